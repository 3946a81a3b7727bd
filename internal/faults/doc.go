// Package faults attacks the three clients with randomized fault schedules. It
// holds tests only.
//
// # The model
//
// A schedule is drawn from a seed: a network, a service that fails in all the
// ways services and the things between do, and callers of one workload who are
// patient or not. It runs on the fake time of testing/synctest over a network in
// memory, HTTP/1.1 or HTTP/2, through the public API. The harness keeps the
// service's own record and compares it with what the callers were told. What must
// hold is the list of invariants in world_test.go.
//
//	schedules_test.go   runs schedules and reports those that break a promise
//	schedule_test.go    what a seed decides
//	fault_test.go       what may befall a request; network_test.go a connection,
//	                    tokens_test.go a question for a token
//	service_test.go     the service, with items_test.go, content_test.go
//	wire_test.go        sees every attempt, and whether it was allowed
//	*_test.go           a workload each: lookups, bulk, loads, submits, submit_all,
//	                    downloads, files
//	liveness_test.go    what must end well once the faults have ended
//	parts_test.go       what the caller gives the library, and what it does instead;
//	                    clock_test.go a cache that outlives its clock
//	policy_rows_test.go how often each row of the retry policy was reached
//	defects_*_test.go   wrong policies that the schedules must find
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
// What befalls an attempt, a dial or a question for a token is drawn by its name:
// the call, what it asks for, and the how-manieth attempt it is. So is the random
// part of every wait of the library (transport.WithJitter). With one caller at a
// time a seed repeats exactly, and prints a digest of what happened, in fake time:
//
//	go test ./internal/faults -run '^TestSchedules$' -schedules 200 -callers 1 -seed 5 -v
//
// With -record it leaves what the digest is made of in a directory, a file for each
// schedule. With several callers goroutines race as they do anywhere; a schedule
// that failed nearly always fails again. One that fails is run without some of its
// faults, and again, until it takes all that are left, and these are printed.
//
// # Adding to it
//
// A fault is a field of fault (or dialFault), an entry in one of the lists of
// functions that draw it, and its effect in the service (or the network). A
// defect names a target in targets_test.go and says with package edit what is wrong
// there; run it by its name, with -defects.
//
// # The caller's own parts
//
// TestParts has what the caller gives the library misbehave. "Throws" is a panic, or
// the end of the goroutine (runtime.Goexit, as t.FailNow does). Whatever they do, no
// refund is sent twice, no result is wrong, and nothing is left behind but what hangs.
//
//	token source    fails, lies   the call ends with ErrCredential or the service's 401
//	                hangs         every call ends by its deadline; one goroutine waits
//	                throws        the calls that wait for it end as it did
//	limiter         fails         ErrLocalLimit, nothing is sent
//	                lies          no bound on the rate but Retry-After
//	                hangs         its calls wait for it, beyond their deadlines
//	                throws        its call ends as it did
//	logger          fails         nothing
//	                hangs         its calls wait for it, beyond their deadlines
//	                throws        its call ends as it did; a Retry-After that it held up
//	                              is lost, and a refund has been sent or not
//	round tripper   fails         the call fails or is repeated as after a broken connection
//	                lies          neither or both of response and error are a failure; a
//	                              status that it makes up is believed, and so is an empty
//	                              body without a length
//	                hangs         its calls wait for it, beyond their deadlines
//	                throws        its call ends as it did, and a refund has been sent or not
//	cache           fails, lies   costs requests; values that are no JSON are not used, but
//	                              a card's item under the key of another is believed
//	                hangs         costs 50 ms for one request, then nothing for a while
//	                throws        a panic of Get reaches the callers; the end of its
//	                              goroutine may, or is a failure, as is all that Set throws
//	wall clock      jumps         a date in Retry-After is obeyed up to a minute, whatever
//	                              it becomes; a token is fetched anew, or used until it is
//	                              refused; cached results live longer by a jump back, and
//	                              end with a jump ahead. Deadlines, backoffs and pauses do
//	                              not use it
//	disk            fails         an error, the old file stays, and the next call goes on
//	                              where the content allows it (rename and directory here;
//	                              sync, a full disk and permissions in package updater)
//
// What throws in a loader or in a bulk call reaches the callers that wait, or the
// loop's goroutine, as a panic. A refund of SubmitAll that was in flight then has its
// result: not sent, if no request was made, and else unknown. Once the part behaves,
// the client, the loader and the next call do as well.
//
// # The service and what is between
//
//	a response comes twice     nothing, where the connection is used once: refunds and
//	                           downloads. On a connection that is kept it is taken for the
//	                           next response, as by every client
//	a response comes before    for a refund no acceptance, unless all its bytes had left
//	the request                (internal/transport, conformance/matrix)
//	a proxy repeats a read     nothing
//	a proxy repeats a refund   it is recorded twice, unless the service removes duplicates,
//	                           and the second response is the one that counts: "rejected"
//	                           can be false. No client can see it
//
// # What is not promised
//
// No client can know better, and the schedules leave it out:
//
//   - Items that all bear the name of a sent card are believed, also if the service
//     has swapped them. Items that cannot be told apart and come in another order, or
//     one twice in place of one left out, are taken by their position.
//   - A 2xx whose body is cut off before it can be seen to be an error object accepts
//     a refund.
//   - An HTTP/2 transport of the caller's without pings sends requests into a dead
//     connection for as long as TCP does not notice: set HTTP2.SendPingTimeout.
package faults
