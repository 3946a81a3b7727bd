package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A family is a kind of services that users meet.
type family struct {
	name   string
	hand   without // of 200 draws
	submit goal    // held by two salts of 200 and 100 draws, with a margin
	bulk   bulkGoal
	draw   func(draw) *scenario
}

// A goal is what calls of Submit reach with a window.
type goal struct {
	accepted, least float64 // on average, and in the worst draw
	unknown, most   float64
	late            float64 // on average
}

// A bulkGoal is what SubmitAll reaches; zero: it is not tried.
type bulkGoal struct {
	unknown       float64 // on average
	time, longest float64 // on average, and in the worst draw
}

// Without a window, by hand, so many are accepted and unknown on average.
type without struct{ accepted, unknown float64 }

func families() []family {
	return []family{
		// What works.
		{"healthy", without{100, 0.1}, goal{98, 70, 1, 7, 2}, bulkGoal{0.5, 1.4, 8}, func(r draw) *scenario {
			s, l := r.healthy(r.between(1, 100), 120)
			s.service = works(l)
			return s
		}},
		{"bursts", without{100, 0.1}, goal{97, 40, 1, 6, 2}, bulkGoal{}, bursts(10)},
		{"a burst at a cold start", without{99, 0.5}, goal{97, 0, 1.5, 100, 2}, bulkGoal{}, bursts(1)},
		{"mixed deadlines", without{100, 0}, goal{98, 90, 0.5, 3, 2}, bulkGoal{}, mixedDeadlines},
		{"slower", without{100, 0}, goal{96, 60, 0.5, 4, 8}, bulkGoal{0.5, 1.3, 3}, slower},
		{"two kinds of responses", without{100, 0}, goal{97, 35, 0.5, 4, 5}, bulkGoal{}, twoKinds},
		{"stops", without{100, 3.1}, goal{94, 50, 3, 15, 7}, bulkGoal{}, stops},
		{"queue, load to 1", without{98, 1.6}, goal{96, 45, 1.5, 47, 9}, bulkGoal{}, queue(0.8, 1, 100)},

		// What fails alone.
		{"1 to 10 % fail", without{100, 3.8}, goal{98, 65, 5, 17, 3}, bulkGoal{5.5, 1.8, 10}, fail(failed, 0.01, 0.1, 0.5, 50)},
		{"10 to 30 % fail", without{100, 18}, goal{98, 65, 22, 39, 3}, bulkGoal{22.5, 1.8, 15}, fail(failed, 0.1, 0.3, 0.5, 50)},
		{"1 to 30 % fail, seldom", without{100, 8.8}, goal{98, 90, 14, 41, 1}, bulkGoal{}, fail(failed, 0.01, 0.3, 0.2, 1)},
		{"1 to 30 % not connected", without{100, 0}, goal{98, 85, 0.5, 4, 3}, bulkGoal{0.5, 1.8, 10}, fail(refused, 0.01, 0.3, 0.5, 50)},
		{"some always fail", without{100, 0}, goal{98, 50, 0.5, 4, 3}, bulkGoal{}, bad(0.1, 0.7, 0.3, 50)},
		{"a poisoned refund", without{100, 0}, goal{98, 85, 0.5, 4, 2}, bulkGoal{}, poison},
		{"1 to 10 % 503", without{100, 3.8}, goal{96, 55, 5, 17, 12}, bulkGoal{}, fail(unavailable, 0.01, 0.1, 0.5, 50)},
		{"10 to 34 % 503", without{100, 19.4}, goal{97, 60, 23, 43, 11}, bulkGoal{}, fail(unavailable, 0.1, 0.34, 0.5, 50)},
		{"2 % Retry-After", without{100, 1}, goal{97, 65, 2, 7, 10}, bulkGoal{2, 6.7, 147}, retryAfter},

		// What is down.
		{"down, 503", without{100, 25.3}, goal{93, 25, 6, 27, 5}, bulkGoal{}, down(unavailable)},
		{"down, 500", without{100, 25.3}, goal{93, 60, 6, 27, 2}, bulkGoal{2.5, 1.4, 4}, down(failed)},
		{"down, refused", without{100, 0}, goal{92, 10, 0.5, 4, 3}, bulkGoal{}, down(refused)},
		{"down, silent", without{100, 25.3}, goal{92, 45, 7, 28, 5}, bulkGoal{}, down(silent)},
		{"restarts", without{100, 3.5}, goal{95, 45, 5, 23, 11}, bulkGoal{}, restarts},

		// What refuses too much.
		{"rate, 503", without{84, 28.6}, goal{90, 45, 4, 53, 72}, bulkGoal{8, 1.4, 3.5}, rate(unavailable, 0)},
		{"rate, 429", without{88, 0.2}, goal{92, 45, 0.5, 5, 72}, bulkGoal{}, rate(limited, 0)},
		{"rate, 429 Retry-After", without{58, 0.6}, goal{92, 35, 0.5, 5, 72}, bulkGoal{}, rate(limited, 1)},
		{"rate, 503 and 1 to 10 % fail", without{84, 31.4}, goal{83, 0, 14, 87, 63}, bulkGoal{22, 4.3, 100}, rateAndChance},
		{"rate, 503, processes", without{84, 28.6}, goal{81, 5, 20, 83, 40}, bulkGoal{}, processes},
		{"minute, 503", without{100, 22.8}, goal{95, 60, 12, 69, 20}, bulkGoal{}, minute(unavailable)},
		{"bans, 503", without{37, 63.4}, goal{30, 0, 3, 54, 16}, bulkGoal{}, banned},
		{"places, 503", without{79, 31.1}, goal{90, 35, 3, 77, 72}, bulkGoal{}, atOnce(unavailable, 1, 50)},
		{"one place, 503", without{69, 44.4}, goal{87, 35, 5, 77, 78}, bulkGoal{}, atOnce(unavailable, 1, 1.01)},
		{"places move, 503", without{95, 45}, goal{96, 0, 3, 88, 79}, bulkGoal{}, moving},
		{"queue, load above 1", without{23, 83}, goal{87, 0, 7, 100, 69}, bulkGoal{5.5, 1.3, 2.5}, queue(1.05, 3, 100)},
		{"one place, queue", without{22, 84.3}, goal{69, 0, 22, 100, 17}, bulkGoal{}, queue(1.05, 3, 1.01)},
		{"rate, 500", without{84, 28.6}, goal{82, 15, 35, 86, 4}, bulkGoal{8, 1.4, 3.5}, rate(failed, 0)},
		{"places, 500", without{79, 31.1}, goal{77, 25, 38, 84, 7}, bulkGoal{4.5, 1.4, 3.5}, atOnce(failed, 1, 50)},
	}
}

func bursts(n int) func(draw) *scenario {
	return func(r draw) *scenario {
		s, l := r.healthy(1, 1)
		time, gap := s.calls[0].deadline, r.between(5, 20)*s.latency
		s.calls = nil
		for i := range n {
			for range int(r.between(1, 500)) {
				s.calls = append(s.calls, call{at: float64(i) * gap, luck: r.Float64()})
			}
		}
		s.service, s.possible = works(l), float64(len(s.calls))
		return s.patient(max(time, 3*s.latency))
	}
}

// Half of the callers have too little time for any response. What becomes of the others?
func mixedDeadlines(r draw) *scenario {
	s, l := r.quick(r.between(0.5, 50), 120)
	s.service = works(l)
	hasty := r.between(0.1, 0.7)
	for i := range s.calls {
		if c := &s.calls[i]; r.Float64() < hasty {
			c.deadline, c.bad = c.at+s.latency*0.3, true
			s.possible--
		} else {
			c.deadline = c.at + 30
		}
	}
	s.about += fmt.Sprintf(", %.2f hasty", hasty)
	return s
}

func slower(r draw) *scenario {
	s, _ := r.quick(r.between(1, 50), 300)
	s.latency = min(s.latency, 1)
	times, from, long := r.between(3, 10), s.last()/4, r.between(10, 120)
	s.service = works(about(r.Rand, s.latency).slower(times, from, from+long))
	s.idle = long * (1 - 1/times)
	s.about += fmt.Sprintf(", times %.1f for %.0f s", times, long)
	return s.patient(max(pick(r.Rand, 2.0, 5, 10, 30), 2.5*times*s.latency))
}

// Two acquirers, or three, whose shares change.
func twoKinds(r draw) *scenario {
	s, _ := r.quick(r.between(1, 60), 210)
	quick, slow, third := about(r.Rand, r.between(0.02, 0.2)), about(r.Rand, r.between(0.5, 5)), about(r.Rand, r.between(0.1, 1))
	shares, three := [3]float64{pick(r.Rand, 0.05, 0.2, 0.5, 0.7), pick(r.Rand, 0.05, 0.2, 0.5, 0.7), pick(r.Rand, 0.05, 0.2, 0.5, 0.7)}, r.IntN(3) == 0
	last := s.last()
	s.service = works(func(now sec) sec {
		share := shares[min(2, int(3*now/last))]
		switch x := r.Float64(); {
		case x < share:
			return slow(now)
		case x < share+0.2 && three:
			return third(now)
		}
		return quick(now)
	})
	s.latency = 5
	s.about += fmt.Sprintf(", slow ones %v, three %v", shares, three)
	return s.patient(15)
}

func stops(r draw) *scenario {
	s, l := r.quick(r.between(1, 50), 240)
	last, time := s.last(), s.calls[0].deadline
	from, long := last/4, min(r.between(2, 30), last/3)
	if r.IntN(2) == 0 { // what has come meanwhile has its response then
		s.service = works(l).stops(from, from+long)
		s.down(from, from+max(0, long-time))
	} else {
		s.service = works(l).down(from, from+long, silent)
		s.down(from, from+long)
	}
	s.over, s.idle = from+long, long
	return s
}

func queue(least, most, places float64) func(draw) *scenario {
	return func(r draw) *scenario {
		at, latency := int(r.between(1, places)), r.between(0.05, 2)
		capacity := float64(at) / latency
		s := r.scenario(latency, r.between(least, most)*capacity, max(120, 100*latency))
		s.patient(r.between(4, 20) * latency)
		forEver := r.IntN(2) == 0
		s.service = queues(about(r.Rand, latency), at, forEver)
		s.about += fmt.Sprintf(", for ever %v", forEver)
		return s.capacity(capacity, at)
	}
}

func fail(with reply, least, most, leastRate, mostRate float64) func(draw) *scenario {
	return func(r draw) *scenario {
		s, l := r.quick(r.between(leastRate, mostRate), 600)
		share := r.between(least, most)
		isBad := func(q request) bool {
			if q.again {
				return r.Float64() < share
			}
			return q.call.luck < share
		}
		s.service = works(l).except(isBad, with)
		if with != refused {
			for _, c := range s.calls {
				if c.luck < share {
					s.possible--
				}
			}
		}
		s.about += fmt.Sprintf(", %.3f fail", share)
		return s
	}
}

// An account, or a kind of refund, fails always.
func bad(least, most, leastRate, mostRate float64) func(draw) *scenario {
	return func(r draw) *scenario {
		s, l := r.quick(r.between(leastRate, mostRate), 600)
		share := r.between(least, most)
		for i := range s.calls {
			if c := &s.calls[i]; c.luck < share {
				c.bad = true
				s.possible--
			}
		}
		s.service = works(l).except(func(q request) bool { return q.call.bad }, failed)
		s.about += fmt.Sprintf(", %.2f bad", share)
		return s
	}
}

// One refund fails, and is sent again each second. Others come now and then.
func poison(r draw) *scenario {
	s, l := r.quick(1/r.between(1, 30), 3000)
	s.possible = float64(len(s.calls))
	time, last := s.calls[0].deadline, s.last()
	for at := 0.5; at < last; at++ {
		s.calls = append(s.calls, call{at: at, bad: true, of: 1})
	}
	slices.SortStableFunc(s.calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	s.service = works(l).except(func(q request) bool { return q.call.bad }, failed)
	return s.patient(time)
}

// Some responses ask for a wait, which concerns nobody else.
func retryAfter(r draw) *scenario {
	s := fail(pick(r.Rand, unavailable, limited), 0.02, 0.021, 0.5, 50)(r)
	service, asks := s.service, pick(r.Rand, 1.0, 5, 20, 60)
	s.service = func(q request) response {
		answer := service(q)
		if answer.reply != accepted {
			answer.asks = asks
		}
		return answer
	}
	return s
}

func down(with reply) func(draw) *scenario {
	return func(r draw) *scenario {
		long := r.between(5, 600)
		s, l := r.quick(r.between(0.5, 30), 60+long+120)
		last := s.last()
		from := min(30, last/4)
		to := from + min(long, last/2)
		s.service = works(l).down(from, to, with)
		s.down(from, to)
		return s
	}
}

func restarts(r draw) *scenario {
	s, l := r.quick(r.between(1, 30), 300)
	s.service = works(l)
	with := pick(r.Rand, refused, unavailable)
	for from := 20.0; from < s.last(); from += r.between(20, 60) {
		to := from + r.between(1, 5)
		s.service = s.service.down(from, to, with)
		s.down(from, to)
	}
	s.over = 0
	return s
}

// limit draws a service with a limit, and its load.
func (r draw) limit(least, most float64) (s *scenario, l latency, rate, burst float64) {
	load := r.between(0.5, 3)
	rate = r.between(least, most)
	s = r.scenario(r.between(0.02, 0.5), load*rate, 240)
	s.patient(pick(r.Rand, 2.0, 5, 10, 30) + s.latency)
	burst = pick(r.Rand, 1, max(1, rate/4), max(1, rate))
	s.about += fmt.Sprintf(", burst %.0f", burst)
	return s, about(r.Rand, s.latency), rate, burst
}

func rate(with reply, asks sec) func(draw) *scenario {
	return func(r draw) *scenario {
		s, l, rate, burst := r.limit(10, 200)
		s.service = works(l).beyond(perSecond(rate, burst), with, asks)
		return s.capacity(rate, 0)
	}
}

func rateAndChance(r draw) *scenario {
	s, l, rate, burst := r.limit(10, 200)
	share := r.between(0.01, 0.1)
	s.service = works(l).except(func(request) bool { return r.Float64() < share }, pick(r.Rand, failed, unavailable)).beyond(perSecond(rate, burst), unavailable, 0)
	s.capacity(rate, 0)
	s.possible *= 1 - share
	s.about += fmt.Sprintf(", %.3f fail", share)
	return s
}

func processes(r draw) *scenario {
	s, l, rate, burst := r.limit(10, 200)
	s.processes = 2 + r.IntN(3)
	for i := range s.calls {
		s.calls[i].process = r.IntN(s.processes)
	}
	s.service = works(l).beyond(perSecond(rate, burst), unavailable, 0)
	s.about += fmt.Sprintf(", %d processes", s.processes)
	return s.capacity(rate, 0)
}

func minute(with reply) func(draw) *scenario {
	return func(r draw) *scenario {
		s, l, rate, _ := r.limit(0.2, 10)
		s.calls = r.stream(float64(len(s.calls))/s.last(), 600)
		s.patient(pick(r.Rand, 2.0, 5, 10, 30) + s.latency)
		most := int(max(12, 60*rate))
		s.service = works(l).beyond(perMinute(most), with, 0)
		s.capacity(float64(most)/60, 0)
		s.possible = 0
		for from := 0.0; from < s.last(); from += 60 {
			n := 0
			for _, c := range s.calls {
				if c.at >= from && c.at < from+60 {
					n++
				}
			}
			s.possible += float64(min(n, most))
		}
		return s
	}
}

// A ban begins with the first request beyond the limit.
func banned(r draw) *scenario {
	s, l, rate, burst := r.limit(10, 200)
	long := pick(r.Rand, 10.0, 30, 60)
	s.calls = r.stream(float64(len(s.calls))/s.last(), 600)
	s.patient(pick(r.Rand, 2.0, 5, 10, 30) + s.latency)
	s.service = works(l).beyond(bans(perSecond(rate, max(5, burst)), long), unavailable, 0)
	s.about += fmt.Sprintf(", bans of %.0f s", long)
	return s.capacity(rate, 0)
}

func atOnce(with reply, least, most float64) func(draw) *scenario {
	return func(r draw) *scenario {
		load, places, latency := r.between(0.5, 3), int(r.between(least, most)), r.between(0.02, 0.5)
		latency = max(latency, float64(places)/200)
		capacity := float64(places) / latency
		s := r.scenario(latency, load*capacity, 240)
		s.patient(pick(r.Rand, 2.0, 5, 10, 30) + latency)
		s.service = works(about(r.Rand, latency)).places(func(sec) int { return places }, with, 0)
		return s.capacity(capacity, places)
	}
}

// The places of a service that grows and shrinks.
func moving(r draw) *scenario {
	latency, each := r.between(0.02, 0.5), r.between(30, 120)
	var places [8]int
	mean := 0.0
	for i := range places {
		places[i] = int(r.between(1, 50))
		mean += float64(places[i]) / float64(len(places))
	}
	latency = max(latency, mean/100)
	s := r.scenario(latency, r.between(0.5, 2)*mean/latency, math.Inf(1))
	at := func(now sec) int { return places[int(now/each)%len(places)] }
	s.patient(pick(r.Rand, 2.0, 5, 10, 30) + latency)
	s.service = works(about(r.Rand, latency)).places(at, unavailable, 0)
	s.capacity(mean/latency, 0)
	s.possible = 0
	n, second := 0.0, 0.0
	for _, c := range s.calls { // second by second, without a queue between them
		if math.Floor(c.at) != second {
			n, second = 0, math.Floor(c.at)
		}
		if n++; n <= float64(at(c.at))/latency {
			s.possible++
		}
	}
	s.about += fmt.Sprintf(", places %v for %.0f s each", places, each)
	return s
}
