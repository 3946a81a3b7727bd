// Package faults attacks the three clients with fault schedules. It holds tests only.
//
// # The model
//
// A seed decides a schedule: a network, a service that fails in all the ways that services
// and proxies fail, and patient or impatient callers of one workload. The schedule runs
// through the public API, in the fake time of testing/synctest, over a network in memory with
// HTTP/1.1 or HTTP/2. The harness keeps the service's own record and compares it with what
// the callers were told. world_test.go lists the invariants.
//
// Refunds over HTTP/1.1 use the library's own transport, with the harness as a wrapper, so
// that connections dialled ahead meet faults as well. Everything else uses an http.Client of
// the harness.
//
//	schedules_test.go   runs schedules and reports those that break a promise
//	every_test.go       every sequence of faults that one call can meet
//	schedule_test.go    what a seed decides
//	fault_test.go       the faults of a request; network_test.go those of a connection
//	service_test.go     the service, and its record
//	wire_test.go        counts the attempts, and checks whether each was allowed
//	call_test.go        what holds for every call
//	workload_test.go    the kinds of workloads: lookups, bulk, submits, submit_all, downloads
//	liveness_test.go    what must end well once the faults have ended
//	parts_test.go       what the caller gives the library misbehaves; callers_test.go: it
//	blind_test.go       broken promises that the schedules must notice
//
// # Commands
//
//	go test ./internal/proof/faults -run '^TestSchedules$' -schedules 20000 -v       many schedules
//	go test ./internal/proof/faults -run '^TestLiveness$' -schedules 20000           a fifth of them; the faults end
//	go test ./internal/proof/faults -run '^TestParts$' -schedules 20000              a fifth, with the caller's own parts at fault
//	go test ./internal/proof/faults -run '^TestSchedules$' -schedules 1 -seed 7 -v   one of them, with what happened
//	go test ./internal/proof/faults -run TestEvery -every 0 -timeout 60m -v          every sequence: of a Submit to its last attempt, of a download to the third fault
//
// Without -seed, each run has the same schedules. With -seed 0 it has new ones.
//
// # To repeat a failure
//
// The fault of an attempt, a dial or a question for a token depends only on the seed and its
// name: the call, what it asks for, and the number of the attempt. The random part of each
// wait of the library depends on the same (transport.Simulation). With several callers,
// goroutines still race, but a schedule that failed nearly always fails again with its seed.
//
// # To add to it
//
// A new fault is a field of fault or dialFault, an entry in a list of functions that draw it,
// and its effect in the service or the network. A new invariant goes into world_test.go, and
// what breaks it into blind_test.go.
//
// # The caller's own parts
//
// In TestParts, what the caller gives the library misbehaves. "Hangs" is until its context ends.
// In every case, no refund is sent twice, no result is wrong except as listed here, and nothing is
// left. bins has a cache that misbehaves, and internal/wire a wall clock.
//
//	token source    fails, lies   the call ends with ErrCredential or the service's 401
//	                hangs         every call ends by its deadline
//	                panics        the calls that wait for it end as it did
//	limiter         fails         ErrLocalLimit, nothing is sent
//	                hangs         every call ends by its deadline
//	                panics        its call ends as it did
//	logger          panics        its call ends as it did; a Retry-After of the response
//	                              is lost, and a refund has been sent or not
//	round tripper   fails         the call fails or is repeated as after a broken connection
//	                lies          both a response and an error, or neither, is a failure;
//	                              a status that it makes up is believed, and so is an
//	                              empty body without a length
//	                hangs         every attempt ends by its timeout
//	                panics        its call ends as it did, and a refund has been sent or not
//
// A panic in a loader reaches the callers that wait, and one in a bulk call reaches the goroutine
// of the loop. A refund of SubmitAll that was in flight is then reported
// as not sent if no request was made, and otherwise as unknown. Once the part works again, the
// client, the loader and the next call work again.
//
// # The service and the proxies in between
//
//	a response comes twice     no effect on refunds and downloads, which use a connection
//	                           once. On a kept connection every client takes it for the
//	                           next response
//	a response comes before    the refund is not accepted, unless all its bytes had left
//	the request                (internal/transport, conformance/matrix)
//	a proxy repeats a refund   it is recorded twice, unless the service removes duplicates.
//	                           Only the second response arrives, so "rejected" can be
//	                           wrong. No client can see it
//
// # What is not promised
//
// The schedules leave out what no client can know:
//
//   - A 2xx accepts a refund, even if its body is an error object that was cut off too early
//     to tell.
//   - An HTTP/2 transport of the caller's without pings sends requests into a dead
//     connection for as long as TCP does not notice: set HTTP2.SendPingTimeout.
package faults
