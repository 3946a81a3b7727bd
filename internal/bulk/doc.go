// Package bulk has what the loops over many requests do alike: LookupAll, SubmitAll and, where it
// applies, the Loader.
//
//   - loop.go: the caller's input, on the loop's goroutine or ahead of it; tasks, and their ends on the
//     loop's goroutine; panics of the caller's code.
//   - pulse.go: what a failure tells the window, and when a loop gives up.
//
// It knows no card and no refund. Which failures are about the service is decided by the verdict's
// scope, in fault, and how many requests may be in flight in flow.
package bulk
