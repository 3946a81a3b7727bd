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
// A level holds when it had enough successes; then a step beyond it is tried. A failure at
// a level that had held goes to what the service accepted meanwhile. A trial tells load from a share
// that fails at random: below its capacity a service fails nothing. Such a share is borne, and so is
// one failure in fifty while no request waits for a place.
//
// Failures in a row are an outage. One probe at a time is sent then, after delays that double.
// Afterwards the window returns to the level at which the outage began, or lower if outages repeat
// while requests wait: so it finds limits by the minute, and rates that lead to bans.
//
// # Time
//
// Most services queue what is too much, and fail nothing. So the window knows how long responses
// take, by the medians of samples: requests that left one after the other. If two samples in a row
// take twice as long as at best, and not even a quarter of the responses is quick, a little less than
// the service works on at once may be in flight, by Little's law. If that does not help, or if far more
// take no longer, the service itself has become slower. If it helps, what had worked before returns.
// A request without a response by its deadline counts as one that took twice as long. A queue also
// shows if the first seven requests come back in order, each after a longer time than the one before.
//
// A request that has waited and has less time left than a response usually takes is too late. One
// that ends at its caller's deadline is a failure only if it took much longer than usual, or if the
// service has fallen silent. Requests leave one by one then, after a time that doubles, and do not
// wait for the one before. After minutes without a request, or without one that waits, the window
// forgets limits, and not that the service works.
package flow
