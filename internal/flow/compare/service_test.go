package compare

import (
	"math"
	"math/rand/v2"
)

// Times are seconds since the beginning.
type sec = float64

// A request arrives at a service.
type request struct {
	at, deadline sec
	call         *call
	again        bool // its call was sent before
}

// A response is what becomes of it.
type response struct {
	reply
	at   sec // +Inf: it never comes
	asks sec // to wait before the next request: Retry-After
}

type reply int

const (
	accepted    reply = iota
	unavailable       // 503
	limited           // 429
	failed            // 500
	refused           // there is no connection, so it was not sent
	silent            // there is no response
)

// A service answers the requests that arrive, in the order of their time.
type service func(request) response

// A latency draws how long a service works on a request.
type latency func(now sec) sec

// about draws latencies with a mean: constant, evenly distributed, or a few of which are much longer.
func about(r *rand.Rand, mean sec) latency {
	switch width := pick(r, 0, 0.2, 0.5, -0.3, -0.5); {
	case width < 0:
		return func(sec) sec { return mean * math.Exp(-width*r.NormFloat64()-width*width/2) }
	default:
		return func(sec) sec { return mean * (1 - width + 2*width*r.Float64()) }
	}
}

// slower takes so many times as long meanwhile.
func (l latency) slower(times float64, from, to sec) latency {
	return func(now sec) sec {
		if now >= from && now < to {
			return times * l(now)
		}
		return l(now)
	}
}

// works accepts everything.
func works(l latency) service {
	return func(r request) response { return response{at: r.at + l(r.at)} }
}

// queues works on so many requests at once, and lets the others wait. If it works for ever, it also
// works on those whose clients have left.
func queues(l latency, places int, forEver bool) service {
	free := make([]sec, places)
	return func(r request) response {
		next := 0
		for i := range free {
			if free[i] < free[next] {
				next = i
			}
		}
		if !forEver && free[next] >= r.deadline {
			return response{silent, math.Inf(1), 0}
		}
		free[next] = max(r.at, free[next]) + l(r.at)
		return response{at: free[next]}
	}
}

// except answers some requests with a failure, which takes as long as a success.
func (s service) except(some func(request) bool, with reply) service {
	return func(r request) response {
		answer := s(r)
		if some(r) {
			answer.reply = with
		}
		return answer
	}
}

// refusal is how long a service takes to refuse what is too much.
const refusal sec = 0.02

// beyond refuses what a limit does not let through.
func (s service) beyond(lets func(now sec) bool, with reply, asks sec) service {
	return func(r request) response {
		if !lets(r.at) {
			return response{with, r.at + refusal, asks}
		}
		return s(r)
	}
}

// perSecond lets so many through, after a burst.
func perSecond(rate, burst float64) func(now sec) bool {
	tokens, last := burst, sec(0)
	return func(now sec) bool {
		tokens = min(burst, tokens+(now-last)*rate)
		if last = now; tokens < 1 {
			return false
		}
		tokens--
		return true
	}
}

// perMinute lets so many through in each minute, by the clock.
func perMinute(most int) func(now sec) bool {
	minute, n := -1.0, 0
	return func(now sec) bool {
		if m := math.Floor(now / 60); m != minute {
			minute, n = m, 0
		}
		n++
		return n <= most
	}
}

// bans lets nothing through for a time after its limit was exceeded.
func bans(lets func(now sec) bool, long sec) func(now sec) bool {
	until := sec(0)
	return func(now sec) bool {
		if now >= until && !lets(now) {
			until = now + long
		}
		return now >= until
	}
}

// places refuses what is more than so many at once. Their number may change with the time.
func (s service) places(most func(now sec) int, with reply, asks sec) service {
	var ends []sec
	return func(r request) response {
		live := ends[:0]
		for _, end := range ends {
			if end > r.at {
				live = append(live, end)
			}
		}
		if ends = live; len(ends) >= most(r.at) {
			return response{with, r.at + refusal, asks}
		}
		answer := s(r)
		ends = append(ends, answer.at)
		return answer
	}
}

// down answers nothing but failures meanwhile.
func (s service) down(from, to sec, with reply) service {
	return func(r request) response {
		switch {
		case r.at < from || r.at >= to:
			return s(r)
		case with == silent:
			return response{silent, math.Inf(1), 0}
		}
		return response{with, r.at + refusal, 0}
	}
}

// stops works on nothing meanwhile, and then on all that has come.
func (s service) stops(from, to sec) service {
	return func(r request) response {
		answer := s(r)
		if r.at >= from && r.at < to {
			answer.at += to - r.at
		}
		return answer
	}
}
