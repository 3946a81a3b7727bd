// Package flow decides how many requests may be in flight to one service, and when the
// next one may leave. It knows no service and starts no goroutine.
//
// A [Window] keeps a level: the requests that may leave in each round trip. By Little's
// law that is one number for two kinds of limit. Up to the level may be in flight, and
// after the first failure they leave evenly spread over the round trip, so that a level
// below one is a pace: 0.1 is one request in ten round trips.
//
//	state      may leave in a round trip         ends with
//	starting   1, 4, 16, …                       a failure: steady at what was accepted
//	steady     the level, later a step more      a failure: a lower level, or a trial; many: paused
//	trial      two thirds of what was accepted   five failures: chance; many successes: load
//	paused     nothing but a probe               a probe that succeeds: returning
//	returning  1, 2, 4, … to a level             that level holds: steady
//
// A level holds when it had enough successes. One request tries the next one while the
// others wait for its result, so growing in vain costs one failure, and then a level needs
// twice as long to hold. A failure at a level that had held goes to what the service accepted
// between the last two failures, but at most to half. The level that failed is the ceiling,
// or what was accepted if few successes tell: below it, a step goes half of the way there, and
// beyond it, steps are 5, 10, 20 % and more.
//
// No level lowers a share of requests that fails at random. A trial tells that from load:
// below its capacity a service fails nothing. A share that was found is borne, up to one and
// a half times its size, until a later trial says otherwise. More than a fifth is never
// borne, unless the window is patient: it is an outage.
//
// Three failures in a row of requests that are alone in flight, four if the window is
// patient, or six of others are an outage. One probe at a time is sent then: after a second,
// and after delays that double up to two minutes, each shortened by up to half at random. The
// delays of the next outage begin where those of the last one ended, and halve with each level
// that holds far beyond the ceiling.
//
// The window returns to the level at which the outage began. If outages repeat, it goes lower,
// towards what the service accepted from one to the next. So it finds a limit by the minute,
// and the rate that a service allows before it bans the client for a while. After an outage,
// levels are on probation: near the ceiling each has to hold for as long as the service worked
// before that outage, up to two minutes. An outage at a far lower level than the one before
// shortens that, because it was not for the level.
//
// So the window is back at full speed some minutes after its service, or after 35 minutes
// where a share of requests goes on failing at random, or where the outages were bans. After a
// few minutes without a request the window forgets what it has learned.
//
// # Use
//
// A loop that owns its requests asks for a place before each one. Due tells when to ask
// again if no result arrives; with other users of the window, Changed does, too.
//
//	changed := w.Changed()
//	if request, ok := w.Take(); ok {
//		// start it, and when it ends, one of:
//		// w.Succeeded(request, took), w.Failed(request, why), w.Answered(request), w.Ignored(request)
//		continue
//	}
//	var due <-chan time.Time
//	if at := w.Due(time.Time{}); !at.IsZero() {
//		due = time.After(time.Until(at))
//	}
//	select {
//	case r := <-results:
//	case <-changed:
//	case <-due:
//	}
//
// A goroutine with a single request uses Wait. A request that waits for something else
// between its place and the network, such as a rate limiter, asks Recheck before it leaves;
// the time that it reports is that of the attempt alone. A call that is to end at some time
// looks at State: Since is when the outage began.
package flow
