// Package bulk has the pool under LookupAll and SubmitAll. It knows no card, no refund and no window: which failures
// are about the service is decided by the verdict's scope, in fault, and how many requests may be in flight in flow.
package bulk
