// Package flow decides how many requests may be in flight to one service, and when the next one may
// leave. It knows no service and starts no goroutine.
//
// A [Window] has one door: [Window.Acquire] waits until a request may leave, and its release says how the
// request ended. All that the window knows of the service comes from these.
//
//	the service           the window                                             file
//	is new                slow start: 10 requests, more with time and successes  start.go
//	refuses what is too   congestion window: as many in a round trip as it       level.go
//	much (429, 503)       accepts, evenly spaced, with additive increase
//	refuses by chance     a comparison with fewer in flight, then no limit       chance.go
//	queues what is too    queueing delay: as many in flight as it works on       queue.go
//	much
//	fails everything      circuit breaker: one probe at a time                   outage.go
//
// Calls that wait do so in one line, retries first (wait.go). The door and what it is told are in door.go.
//
// # Load
//
// A refusal is a sign of load; whoever releases decides what is one. The level falls by the share that was
// refused, at most to a half, and grows along a cubic while calls wait for it. If refusals go on
// far below a level that was refused before, a third less is sent for a comparison. Below its capacity a
// service refuses nothing: if the share stays the same, it is chance, and the limit is forgotten.
//
// Responses that take twice as long as at best, even the quickest of a group, are a queue. Its places
// follow from Little's law, and half of those are tried once: if responses take as long, the service itself
// is slower, and no queue is believed for some minutes.
//
// A failure says something of its request, and nothing of the load.
//
// # Outages
//
// The breaker opens after thirty failures of different requests without a success between them, or five over
// a minute. A request without a response for four times the mean time counts as one. Then Acquire fails at
// once, but for one probe at a time, and one success closes the breaker. A slow start follows.
//
// # Deadlines
//
// A call waits as long as its deadline leaves the usual time for a response, and fails with [ErrTooLate]
// then. A request that finds a place at once is sent however little time is left.
package flow
