// Package flow decides how many requests may be in flight to one service, and when the
// next one may leave. It knows no service and starts no goroutine.
//
// A [Window] is a congestion window, as TCP has one. It keeps a level: the requests that may leave
// in each round trip. Up to the level may be in flight, and after the first failure they leave
// evenly spread over the round trip, so that a level below one is a pace.
//
//	state      may leave in a round trip         ends with
//	starting   10, then all that wait            failures: steady at what was accepted
//	steady     the level, later a step more      a failure: a lower level, or a trial; many: paused
//	trial      two thirds of what was accepted   five failures: chance; many successes: load
//	paused     nothing but a probe               a probe that succeeds: returning
//	returning  1, 2, 4, … to a level             that level holds: steady
//
// A level holds when it had enough successes; then one request tries a step beyond it. A failure at
// a level that had held goes to what the service accepted meanwhile. A trial tells load from a share
// that fails at random: below its capacity a service fails nothing. Such a share is borne. So is one
// failure in fifty while no request waits for a place, if no more of those in flight with it fail:
// such a level is not the load.
//
// Failures in a row are an outage. One probe at a time is sent then, after delays that double up to
// two minutes. Afterwards the window returns to the level at which the outage began, or lower if
// outages repeat while requests wait, so that it finds limits by the minute, and rates that lead to
// bans.
//
// # Time
//
// Most services queue what is too much, and fail nothing. So the window knows how long responses
// take: by the medians of samples, which are requests that left one after the other, so that one
// response says nothing. If two samples in a row take twice as long as at best, and not even a
// quarter of the responses is quick, then a little less than the service works on at once may be in
// flight, by Little's law. If that does not help, the service itself has become slower, and the new
// time is the best. If it does, the service may only have stopped for a while: the number in flight
// returns to what had worked before, and then grows slowly. What is best rises in half a minute,
// because a queue may grow slowly. Before the first sample has ended, the longest response stands
// for the usual one.
//
// A request that has waited and has less time left than a response usually takes is too late. One
// that ends at its caller's deadline is a failure only if it took much longer than usual, or if the
// service has fallen silent. A silent service has stopped, which says nothing of the level. Requests
// leave one by one then, after a time that doubles: they do not wait for the one before, because it
// may never end. A request that hangs says little if several that left later have succeeded. After
// minutes without a request, or without one that waits, the window forgets limits, and not that the
// service works.
//
// # Use
//
// A loop that owns its requests asks Take for a place before each one, and reports its end with one
// of Succeeded, Failed, Late, Answered and Ignored. Due tells when to ask again if no result
// arrives, and Changed, with other users of the window. A goroutine with a single request uses
// Wait. A request that waits for something else between its place and the network asks Recheck and
// TooLate before it leaves. State.Since is when an outage began.
package flow
