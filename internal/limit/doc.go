// Package limit knows the caller's limiter and the pause that a service asked for.
//
// A [Throttle] holds back every attempt of a client during a cooldown, which Retry-After on a 429
// or 503 begins. The log and the errors call a cooldown a pause. Each attempt waits in
// [Throttle.Wait], for the cooldown and then for the caller's [Limiter].
//
// It knows no call: how long is waited before a retry is decided in transport, and how many
// requests may be in flight in flow.
package limit
