package flow

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// A service decides what becomes of a request that arrives while so many are in flight,
// itself included.
type service func(now time.Duration, inFlight int) (failed bool)

// A load is a stream of requests through one or more windows.
type load struct {
	requests    int           // for each window
	windows     int           // processes; 0: one
	concurrency int           // of each window
	again       bool          // what failed is sent again
	patient     bool          // and one success ends an outage
	rtt         time.Duration // 0: 50 ms
	jitter      float64       // of it
	giveUp      time.Duration // 0: 30 minutes
	retryAfter  time.Duration // that a failure asks for
	until       time.Duration // not 0: it ends at full speed after this time
}

// A report says what became of it.
type report struct {
	sent, failed, left int
	took               time.Duration
	accepted           []time.Duration
}

type flight struct {
	at      time.Time
	began   time.Time
	window  int
	request int
	failed  bool
}

type flights []flight

func (f flights) Len() int           { return len(f) }
func (f flights) Less(i, j int) bool { return f[i].at.Before(f[j].at) }
func (f flights) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *flights) Push(x any)        { *f = append(*f, x.(flight)) }
func (f *flights) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}

// probes draws the waits before probes.
func probes(random *rand.Rand) func(below time.Duration) time.Duration {
	return func(below time.Duration) time.Duration { return time.Duration(random.Int64N(int64(below))) }
}

// run sends a load to a service on fake time.
func run(t *testing.T, seed uint64, l load, s service) (r report) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 7))
		if l.rtt == 0 {
			l.rtt = 50 * time.Millisecond
		}
		if l.giveUp == 0 {
			l.giveUp = 30 * time.Minute
		}
		rests := make([]time.Time, max(1, l.windows))
		windows := make([]*Window, max(1, l.windows))
		todo, flying, over := make([]int, len(windows)), make([]int, len(windows)), make([]bool, len(windows))
		for i := range windows {
			windows[i], todo[i] = New(l.patient, probes(random)), l.requests
		}
		var air flights
		began := time.Now()
		for {
			var next time.Time
			if len(air) > 0 {
				next = air[0].at
			}
			for i, w := range windows {
				for todo[i] > 0 && flying[i] < l.concurrency && !over[i] {
					if rest := time.Until(rests[i]); rest > 0 {
						if next.IsZero() || rests[i].Before(next) {
							next = rests[i]
						}
						break
					}
					request, ok := w.Take()
					if !ok {
						if due := w.Due(time.Time{}); !due.IsZero() && (next.IsZero() || due.Before(next)) {
							next = due
						}
						break
					}
					todo[i]--
					flying[i]++
					r.sent++
					took := l.rtt
					if l.jitter > 0 {
						took = time.Duration(float64(took) * (1 - l.jitter/2 + l.jitter*random.Float64()))
					}
					heap.Push(&air, flight{time.Now().Add(took), time.Now(), i, request, s(time.Since(began), len(air)+1)})
					if len(air) == 1 || air[0].at.Before(next) {
						next = air[0].at
					}
				}
			}
			if next.IsZero() {
				break
			}
			time.Sleep(time.Until(next))
			for len(air) > 0 && !air[0].at.After(time.Now()) {
				f := heap.Pop(&air).(flight)
				w := windows[f.window]
				flying[f.window]--
				if !f.failed {
					w.Succeeded(f.request, time.Since(f.began))
					r.accepted = append(r.accepted, time.Since(began))
					if l.until > 0 && r.atFullSpeed(len(r.accepted)-1, l.until) {
						return
					}
					continue
				}
				w.Failed(f.request, time.Since(f.began), "503")
				r.failed++
				if l.retryAfter > 0 {
					rests[f.window] = time.Now().Add(l.retryAfter)
				}
				if l.again {
					todo[f.window]++
				}
				state := w.State()
				if l.giveUp > 0 && !state.Since.IsZero() && time.Since(state.Since) >= l.giveUp {
					over[f.window] = true
				}
			}
		}
		r.took = time.Since(began)
		for _, n := range todo {
			r.left += n
		}
	})
	return r
}

// Services.

func atMost(most int) service { return func(_ time.Duration, n int) bool { return n > most } }

func bucket(perSecond float64, burst int) service {
	tokens, last := float64(burst), time.Duration(0)
	return func(now time.Duration, _ int) bool {
		tokens = min(float64(burst), tokens+(now-last).Seconds()*perSecond)
		if last = now; tokens < 1 {
			return true
		}
		tokens--
		return false
	}
}

func share(seed uint64, p float64) service {
	random := rand.New(rand.NewPCG(seed, 1))
	return func(time.Duration, int) bool { return random.Float64() < p }
}

// window accepts so many in each span of time.
func window(span time.Duration, most int) service {
	at, count := time.Duration(-1), 0
	return func(now time.Duration, _ int) bool {
		if now/span != at {
			at, count = now/span, 0
		}
		count++
		return count > most
	}
}

// sliding accepts so many in any span of time.
func sliding(span time.Duration, most int) service {
	var at []time.Duration
	return func(now time.Duration, _ int) bool {
		for len(at) > 0 && now-at[0] >= span {
			at = at[1:]
		}
		if len(at) >= most {
			return true
		}
		at = append(at, now)
		return false
	}
}

// ban refuses everything for a time after its limit was exceeded, and longer for each
// request meanwhile.
func ban(limit service, length time.Duration) service {
	until := time.Duration(0)
	return func(now time.Duration, n int) bool {
		if now < until || limit(now, n) {
			until = now + length
			return true
		}
		return false
	}
}

// moving has so many places, each for a time in turn.
func moving(each time.Duration, places ...int) service {
	return func(now time.Duration, n int) bool { return n > places[int(now/each)%len(places)] }
}

// nowAndThen works for random times until it works for good at the end. While it is up, a
// share of what arrives fails nevertheless, and another share after the end.
func nowAndThen(seed uint64, end, up, down time.Duration, failed, after float64) service {
	random := rand.New(rand.NewPCG(seed, 3))
	isUp, until := true, time.Duration(0)
	return func(now time.Duration, _ int) bool {
		if now >= end {
			return random.Float64() < after
		}
		for now >= until {
			mean := down
			if isUp = !isUp; isUp {
				mean = up
			}
			until += time.Duration(random.ExpFloat64() * float64(mean))
		}
		return !isUp || random.Float64() < failed
	}
}
