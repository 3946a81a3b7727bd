// Package limit knows the caller's limiter and the pause that a service asked for.
//
// A [Throttle] holds back the attempts of an account for which the service asks to wait, with Retry-After
// on a 429 or 503. Each attempt waits in [Throttle.Wait], for the end of the pause and then for the
// caller's [Limiter].
//
// It knows no call: how long is waited before a retry is decided in transport, and how many
// requests may be in flight in flow.
package limit
