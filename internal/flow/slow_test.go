package flow

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A few failures while nothing waits for a place are no load, however slow the service is: the
// calls after them end as by hand. An outage in a quiet time costs no more than the outage. All
// draws have a fixed seed.
func TestSlowServiceFailsNowAndThen(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	const quiet, end = 2 * time.Minute, 7 * time.Minute // one call in ten seconds, and then ten a second
	at := func(failures ...time.Duration) service {
		return func(now time.Duration, _ int) bool {
			if len(failures) == 0 || now < failures[0] {
				return false
			}
			failures = failures[1:]
			return true
		}
	}
	between := func(from, to time.Duration) service {
		return func(now time.Duration, _ int) bool { return from <= now && now < to }
	}
	random := func(share float64) service {
		random := rand.New(rand.NewPCG(1, 77))
		return func(time.Duration, int) bool { return random.Float64() < share }
	}
	for _, latency := range []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, time.Second, 4 * time.Second, 8 * time.Second} {
		for _, deadline := range []time.Duration{3*latency + 50*time.Millisecond, 90 * time.Second} {
			for name, fails := range map[string]func() service{
				"one":                func() service { return at(50 * time.Second) },
				"the last before":    func() service { return at(quiet - 10*time.Second) },
				"the first call":     func() service { return at(0) },
				"two":                func() service { return at(50*time.Second, 60*time.Second) },
				"three":              func() service { return at(50*time.Second, 90*time.Second, quiet-10*time.Second) },
				"two while many fly": func() service { return at(quiet+time.Minute, quiet+62*time.Second) },
				"one in a hundred":   func() service { return random(0.01) },
				"an outage before":   func() service { return between(30*time.Second, 100*time.Second) },
				"two outages before": func() service {
					return func(now time.Duration, n int) bool {
						return between(10*time.Second, 40*time.Second)(now, n) || between(60*time.Second, 90*time.Second)(now, n)
					}
				},
			} {
				s := submits{deadline: deadline}
				for at := time.Duration(0); at < quiet; at += 10 * time.Second {
					s.bursts = append(s.bursts, burst{at, 1})
				}
				for at := quiet; at < end; at += 100 * time.Millisecond {
					s.bursts = append(s.bursts, burst{at, 1})
				}
				e, _ := throughWindow(t, 1, healthy{latency: latency, spread: 0.2, fails: fails()}, s)
				line := fmt.Sprintf("%v, deadline %v, %s fail: %+v", latency, deadline, name, e)
				if e.notSent > e.all()/100 || e.unknown > 0 {
					t.Error("missed: " + line)
				} else {
					t.Log(line)
				}
			}
		}
	}
}

// One request that takes minutes among hundreds that take 50 ms does not slow the others down
// afterwards, if their pace is limited.
func TestOneSlowRequestChangesNoPace(t *testing.T) {
	for _, patient := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const slowest, end = 3 * time.Minute, 6 * time.Minute
			w, began := New(patient, nil), time.Now()
			var mu sync.Mutex
			inFlight, accepted := 0, map[time.Duration]int{} // by minute
			slow := false
			var workers sync.WaitGroup
			for range 8 {
				workers.Go(func() {
					for time.Since(began) < end {
						request, err := w.Wait(t.Context(), 0)
						if pause, ok := errors.AsType[*Pause](err); ok {
							time.Sleep(pause.Left)
							continue
						}
						mu.Lock()
						inFlight++
						refused, took := inFlight > 4, roundTrip
						if !refused && !slow && time.Since(began) > time.Minute {
							slow, took = true, slowest
						}
						mu.Unlock()
						left := time.Now()
						time.Sleep(took)
						mu.Lock()
						inFlight--
						if !refused {
							accepted[time.Since(began).Truncate(time.Minute)]++
						}
						mu.Unlock()
						if refused {
							w.Failed(request, 0, "503")
						} else {
							w.Succeeded(request, time.Since(left))
						}
					}
				})
			}
			workers.Wait()
			if before, after := accepted[0], accepted[slowest+time.Minute]; !slow || before < 1000 || after < before/2 { // as many in 80 runs
				t.Errorf("patient %t: %d in the minute before the slow one, %d in the minute after it", patient, before, after)
			}
		})
	}
}

// A few calls a second to a service that fails a share of them at random: what the window holds back
// to find that out stays a small share, too, up to one in ten. All draws have a fixed seed.
func TestShareThatFailsAtRandom(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
	for share, most := range map[float64]float64{0.01: 0.15, 0.02: 0.12, 0.03: 0.12, 0.05: 0.12, 0.1: 0.3, 0.2: 0.8} { // not sent
		for _, latency := range []time.Duration{50 * time.Millisecond, time.Second, 8 * time.Second} {
			for _, perSecond := range []float64{1, 2, 5} {
				random := rand.New(rand.NewPCG(1, 77))
				fails := func(time.Duration, int) bool { return random.Float64() < share }
				e, _ := throughWindow(t, 1, healthy{latency: latency, spread: 0.2, fails: fails}, submits{perSecond: perSecond, during: 30 * time.Minute, deadline: 3 * latency})
				if float64(e.notSent) > most*float64(e.all()) || e.unknown > 0 {
					t.Errorf("%v, %v a second, %v fail: %+v", latency, perSecond, share, e)
				}
			}
		}
	}
}
