// Package faults attacks the three clients with randomized fault schedules. It
// holds tests only.
//
// # The model
//
// A schedule is drawn from a seed: a network, a service that fails in all the ways
// that services and proxies do, and callers of one workload, patient or impatient. It
// runs through the public API, in the fake time of testing/synctest, over a network in
// memory with HTTP/1.1 or HTTP/2. The harness keeps the service's own record and
// compares it with what the callers were told. world_test.go lists the invariants that
// must hold.
//
//	schedules_test.go   runs schedules and reports those that break a promise
//	schedule_test.go    what a seed decides
//	fault_test.go       what can happen to a request; network_test.go to a connection,
//	                    tokens_test.go to a request for a token
//	service_test.go     the service, with items_test.go, content_test.go
//	wire_test.go        checks whether each attempt was allowed
//	*_test.go           a workload each: lookups, bulk, loads, submits, submit_all,
//	                    downloads, files
//	liveness_test.go    what must end well once the faults have ended
//	parts_test.go       misbehavior of what the caller gives the library; clock_test.go a
//	                    cache while the clock jumps
//	policy_rows_test.go how often each row of the retry policy was reached
//	defects_*_test.go   seeded defects that the schedules must find
//
// # Commands
//
//	go test ./internal/faults -run '^TestSchedules$' -schedules 20000 -v   many schedules, with the rows they reach
//	go test ./internal/faults -run '^TestLiveness$' -schedules 20000       a fifth of them, whose faults end
//	go test ./internal/faults -run '^TestParts$' -schedules 20000           a fifth, with the caller's own parts at fault
//	go test ./internal/faults -run '^TestSchedules$' -schedules 1 -seed 7 -v   one of them, with what happened
//	go test ./internal/faults -run '^TestDefects$' -defects -timeout 60m -v    that defects are caught
//
// Without -seed a run has the same schedules as the one before; -seed 0 looks for others.
//
// # Replay
//
// What happens to an attempt, a dial or a request for a token is drawn by its name: the
// call, what it asks for, and the number of the attempt. So is the random part of every
// wait of the library (transport.WithJitter). With one caller at a time a seed repeats
// exactly, and prints a digest of what happened, in fake time:
//
//	go test ./internal/faults -run '^TestSchedules$' -schedules 200 -callers 1 -seed 5 -v
//
// With -record it writes what the digest is made of to a directory, a file for each
// schedule. With several callers, goroutines race as they do anywhere, and a schedule
// that failed nearly always fails again. A schedule that fails is run again with fewer
// and fewer faults, until all that are left are needed; these are printed.
//
// # Adding to it
//
// To add a fault, add a field of fault (or dialFault), an entry in one of the lists of
// functions that draw it, and its effect in the service (or the network). To add a
// defect, name a target in targets_test.go and say with package edit what is wrong
// there. Run it by its name, with -defects.
//
// # The caller's own parts
//
// In TestParts, what the caller gives the library misbehaves. "Throws" is a panic, or the
// end of the goroutine (runtime.Goexit, as by t.FailNow). Whatever happens, no refund is
// sent twice, no result is wrong except as listed here, and nothing is left behind but
// what hangs.
//
//	token source    fails, lies   the call ends with ErrCredential or the service's 401
//	                hangs         every call ends by its deadline; one goroutine waits
//	                throws        the calls that wait for it end as it did
//	limiter         fails         ErrLocalLimit, nothing is sent
//	                lies          only Retry-After bounds the rate
//	                hangs         its calls wait for it, also beyond their deadlines
//	                throws        its call ends as it did
//	logger          fails         no effect
//	                hangs         its calls wait for it, also beyond their deadlines
//	                throws        its call ends as it did; a Retry-After of the response
//	                              is lost, and a refund has been sent or not
//	round tripper   fails         the call fails or is repeated as after a broken connection
//	                lies          both a response and an error, or neither, is a failure;
//	                              a status that it makes up is believed, and so is an
//	                              empty body without a length
//	                hangs         its calls wait for it, also beyond their deadlines
//	                throws        its call ends as it did, and a refund has been sent or not
//	cache           fails, lies   costs requests; values that are not JSON are not used, but
//	                              a card's item under the key of another is believed
//	                hangs         costs 50 ms for one request, then nothing for a while
//	                throws        a panic of Get reaches the callers; the end of Get's
//	                              goroutine reaches them or counts as a failure; whatever
//	                              Set throws counts as a failure
//	wall clock      jumps         a wait for a date in Retry-After is at most a minute; a
//	                              token is fetched again, or used until it is refused;
//	                              cached results live longer after a jump back, and expire
//	                              with a jump ahead. Deadlines, backoffs and pauses do not
//	                              use it
//	disk            fails         the call fails and the old file stays; the next call
//	                              continues if the content allows it (rename and directory
//	                              here; sync, a full disk and permissions in package
//	                              updater)
//
// What throws in a loader or in a bulk call reaches the callers that wait, or the
// loop's goroutine, as a panic. A refund of SubmitAll that was in flight is then
// reported as not sent, if no request was made, and else as unknown. Once the part
// behaves again, the client, the loader and the next call do as well.
//
// # The service and the proxies in between
//
//	a response comes twice     no effect on refunds and downloads, which use a connection
//	                           once. On a kept connection it is taken for the next
//	                           response, as by every client
//	a response comes before    the refund is not accepted, unless all its bytes had left
//	the request                (internal/transport, conformance/matrix)
//	a proxy repeats a read     no effect
//	a proxy repeats a refund   it is recorded twice, unless the service removes duplicates.
//	                           Only the second response arrives, so "rejected" can be
//	                           wrong. No client can see it
//
// # What is not promised
//
// No client can know better, and the schedules leave this out:
//
//   - An item that names a sent card is believed, even if the service has swapped the
//     names. Items that cannot be told apart are taken by position, even if the service
//     sends them in another order, or one twice and another not at all.
//   - A 2xx whose body is cut off before it can be seen to be an error object accepts
//     a refund.
//   - An HTTP/2 transport of the caller's without pings sends requests into a dead
//     connection for as long as TCP does not notice: set HTTP2.SendPingTimeout.
package faults
