package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// A scenario is a service, and what clients want of it.
type scenario struct {
	service   service
	calls     []call
	processes int // with a window each; 0: one

	possible float64 // calls that count and can be accepted
	over     sec     // when the service works again

	// What a bulk call can reach.
	latency   sec
	perSecond float64 // +Inf: any
	atOnce    int     // 0: any
	idle      sec     // nothing works

	about string // what was drawn
}

// A draw draws the numbers of a scenario.
type draw struct{ *rand.Rand }

// between draws a number whose order of magnitude is evenly distributed.
func (r draw) between(least, most float64) float64 {
	return least * math.Exp(r.Float64()*math.Log(most/least))
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// stream draws calls that come one by one: evenly or at random.
func (r draw) stream(rate float64, during sec) (calls []call) {
	even := r.IntN(2) == 0
	during = min(during, float64(*most)/rate) // a scenario with more calls is shorter
	for at := 0.0; at < during; {
		calls = append(calls, call{at: at, luck: r.Float64()})
		if even {
			at += 1 / rate
		} else {
			at += r.ExpFloat64() / rate
		}
	}
	return calls
}

// patient gives all calls so much time.
func (s *scenario) patient(time sec) *scenario {
	for i := range s.calls {
		s.calls[i].deadline = s.calls[i].at + time
	}
	s.about += fmt.Sprintf(", deadlines of %.2f s", time)
	return s
}

func (s *scenario) last() sec { return s.calls[len(s.calls)-1].at }

// capacity notes what the service can accept in a second, or at once.
func (s *scenario) capacity(perSecond float64, atOnce int) *scenario {
	s.perSecond, s.atOnce = perSecond, atOnce
	s.possible = min(float64(len(s.calls)), perSecond*s.calls[len(s.calls)-1].deadline)
	s.about += fmt.Sprintf(", capacity %.1f a second, load %.2f, at once %d", perSecond, float64(len(s.calls))/s.last()/perSecond, atOnce)
	return s
}

// down notes that nothing works for a time.
func (s *scenario) down(from, to sec) {
	s.idle += to - from
	s.over = to
	for _, c := range s.calls {
		if c.at >= from && c.at < to && !c.bad {
			s.possible--
		}
	}
	s.about += fmt.Sprintf(", down from %.0f to %.0f", from, to)
}

// records is how many records a bulk call has.
func (s *scenario) records(inFlight int) int {
	each := float64(inFlight) / s.latency
	if s.atOnce > 0 {
		each = min(each, float64(s.atOnce)/s.latency)
	}
	n := max(200, min(2000, 300*each))
	if s.over > 0 { // it has to last
		n = max(n, min(20_000, (s.over+30)*each))
	}
	return int(n)
}

// best is how long a bulk call takes for who knows the service.
func (s *scenario) best(records, inFlight int) sec {
	if s.atOnce > 0 {
		inFlight = min(inFlight, s.atOnce)
	}
	return float64(records)/min(float64(inFlight)/s.latency, s.perSecond) + s.idle
}

// healthy services take up to eight seconds, and callers know that.
func (r draw) healthy(rate float64, during sec) (*scenario, latency) {
	s := r.scenario(r.between(0.02, 8), rate, during)
	return s.patient(pick(r.Rand, 2.5, 3, 5, 10) * s.latency), about(r.Rand, s.latency)
}

// quick services take up to two seconds, and callers have deadlines as they are usual.
func (r draw) quick(rate float64, during sec) (*scenario, latency) {
	s := r.scenario(r.between(0.03, 2), rate, during)
	return s.patient(max(5*s.latency, pick(r.Rand, 2.0, 5, 10, 30))), about(r.Rand, s.latency)
}

func (r draw) scenario(latency sec, rate float64, during sec) *scenario {
	s := &scenario{calls: r.stream(rate, during), latency: latency, perSecond: math.Inf(1)}
	s.possible = float64(len(s.calls))
	s.about = fmt.Sprintf("%.3f s, %.1f a second", latency, rate)
	return s
}
