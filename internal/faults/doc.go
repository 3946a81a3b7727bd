// Package faults attacks the three clients with randomized fault schedules. It
// holds tests only.
//
// A schedule is drawn from a seed: a network, a service that fails in all the
// ways services and the things between do, and callers of one workload who are
// patient or not. It runs on the fake time of testing/synctest over a network in
// memory, HTTP/1.1 or HTTP/2, through the public API. The harness keeps the
// service's own record and compares it with what the callers were told.
//
//	go test ./internal/faults -run Schedules -schedules 20000   many schedules
//	go test ./internal/faults -run Schedules -seed 7 -v         one of them, with what happened
//	go test ./internal/faults -run Defects -defects -v          that defects are caught
//
// The jitter of the library is not drawn from the seed, and goroutines that run
// at the same time race as they do anywhere: a failure that depends on either is
// met again with -count.
package faults
