package adaptive

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

var full = flag.Bool("matrix", false, "measure every kind of limit at every rate, which takes minutes")

// A service limits as one of the kinds that are in use.
type service struct {
	kind       string
	retryAfter bool
	limit      func(second float64) float64

	mu       sync.Mutex
	began    time.Time
	tokens   float64
	last     float64
	window   float64
	count    float64
	accepted []float64 // times, of the sliding window
	inFlight int
}

const latency = 30 * time.Millisecond

// ask decides about one request, and returns the Retry-After of a refusal.
func (s *service) ask() (ok bool, retryAfter time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.began).Seconds()
	limit := s.limit(now)
	span := 1.0 // seconds that a bucket or a sliding window holds
	if limit < 1 {
		span = 60
	}
	var wait float64
	switch s.kind {
	case "none":
		return true, 0
	case "bucket":
		s.tokens = min(max(1, limit*span), s.tokens+(now-s.last)*limit)
		s.last = now
		if s.tokens >= 1-1e-9 {
			s.tokens--
			return true, 0
		}
		wait = (1 - s.tokens) / limit
	case "second", "minute":
		width := map[string]float64{"second": 1, "minute": 60}[s.kind]
		if k := math.Floor(now/width + 1.0/3); k != s.window {
			s.window, s.count = k, 0
		}
		if s.count < max(1, math.Floor(limit*width+1e-9)) {
			s.count++
			return true, 0
		}
		wait = (s.window+2.0/3)*width - now
	case "sliding":
		for len(s.accepted) > 0 && s.accepted[0] <= now-span {
			s.accepted = s.accepted[1:]
		}
		if float64(len(s.accepted)) < max(1, math.Floor(limit*span+1e-9)) {
			s.accepted = append(s.accepted, now)
			return true, 0
		}
		wait = s.accepted[0] + span - now
	case "concurrency":
		if s.inFlight < s.places(limit) {
			s.inFlight++
			return true, 0
		}
		wait = latency.Seconds()
	}
	if s.retryAfter {
		return false, time.Duration(max(1, math.Ceil(wait))) * time.Second
	}
	return false, 0
}

func (s *service) places(limit float64) int { return int(max(1, math.Round(limit*latency.Seconds()))) }

// allowed is what the service would accept in a second: windows count whole
// requests.
func (s *service) allowed(second float64) float64 {
	limit := s.limit(second)
	switch {
	case s.kind == "concurrency":
		return float64(s.places(limit)) / latency.Seconds()
	case s.kind == "bucket" || s.kind == "none":
		return limit
	case s.kind == "minute" || limit < 1:
		return max(1, math.Floor(60*limit+1e-9)) / 60
	}
	return max(1, math.Floor(limit+1e-9))
}

// A record counts, for each second, the requests sent in it.
type record struct {
	service           *service
	accepted, refused []float64
	rate              rate.Limit // at the end
}

// drive has 64 callers send all that the limiter lets them.
func drive(t *testing.T, s *service, most rate.Limit, seconds int) (r record) {
	synctest.Test(t, func(t *testing.T) {
		s.began = time.Now()
		if s.limit != nil {
			s.tokens = s.limit(0)
			if s.tokens < 1 {
				s.tokens *= 60
			}
		}
		r = record{s, make([]float64, seconds+1), make([]float64, seconds+1), 0}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
		defer cancel()
		l := New(1, most)
		var mu sync.Mutex
		var callers sync.WaitGroup
		for i := range uint64(64) {
			callers.Go(func() {
				random := rand.New(rand.NewPCG(i, uint64(seconds)))
				for retries := 0; l.Wait(ctx) == nil; {
					sent := time.Now()
					jitter := time.Duration(random.Int64N(int64(2 * time.Millisecond)))
					if s.kind != "concurrency" {
						time.Sleep(5*time.Millisecond + jitter)
					}
					ok, retryAfter := s.ask()
					switch {
					case s.kind != "concurrency":
						time.Sleep(25 * time.Millisecond)
					case ok:
						time.Sleep(latency + jitter - time.Millisecond)
						s.mu.Lock()
						s.inFlight--
						s.mu.Unlock()
					default:
						time.Sleep(time.Millisecond)
					}
					second := min(seconds, int(sent.Sub(s.began).Seconds()))
					mu.Lock()
					if ok {
						r.accepted[second]++
					} else {
						r.refused[second]++
					}
					mu.Unlock()
					if ok {
						l.Accepted(sent)
						retries = 0
						continue
					}
					l.Refused(sent, retryAfter)
					if retryAfter == 0 { // the client's own backoff
						time.Sleep(time.Duration(random.Int64N(int64(min(5*time.Second, 200*time.Millisecond<<min(retries, 6))))))
						retries++
					}
				}
			})
		}
		callers.Wait()
		r.rate = l.Rate()
	})
	return r
}

// between returns the share of what was allowed that was used, and the share of
// the requests that was refused.
func (r record) between(from, to int) (used, refused float64) {
	if r.service.kind == "minute" { // whole windows, which begin at 40 s
		from, to = 40+60*int(math.Ceil(float64(from-40)/60)), 40+60*((to-40)/60)
	}
	var accepted, no, allowed float64
	for i := from; i < to; i++ {
		accepted += r.accepted[i]
		no += r.refused[i]
		allowed += r.service.allowed(float64(i))
	}
	return accepted / allowed, no / max(1, accepted+no)
}

func check(t *testing.T, name string, used, refused float64) {
	t.Helper()
	t.Logf("%-32s used %5.1f %%, refused %4.2f %%", name, 100*used, 100*refused)
	if used < 0.90 || refused > 0.02 {
		t.Errorf("%s: used %.1f %%, want 90; refused %.2f %%, want at most 2", name, 100*used, 100*refused)
	}
}

// TestConstantLimit proves that a limit which nobody told is used to 90 % with at
// most 2 % refused, from the later of 60 s and 200 requests on; a window of a
// minute at 10 a minute takes half an hour.
func TestConstantLimit(t *testing.T) {
	limits := []float64{1, 40}
	if *full {
		limits = []float64{10.0 / 60, 1, 7, 40, 300}
	}
	for _, kind := range []string{"bucket", "second", "minute", "sliding", "concurrency"} {
		for _, limit := range limits {
			if kind == "second" && limit < 1 || kind == "concurrency" && limit < 40 {
				continue // the smallest such limit is another one
			}
			for _, retryAfter := range []bool{false, true} {
				name := fmt.Sprintf("%s %.3g a second, Retry-After %v", kind, limit, retryAfter)
				from, seconds := max(60, int(200/limit)), map[bool]int{true: 420, false: 900}[limit > 100]
				if limit < 10 {
					seconds = 1500
				}
				if limit < 1 {
					seconds = 4000
					if kind == "minute" {
						from = 1800
					}
				}
				// Of few windows, each with a refusal or two, a run has a share that varies: the
				// mean of several is measured. Callers that wake at once do so in any order.
				runs := 1.0
				if kind == "minute" && limit == 1 {
					runs = 8
				}
				var used, refused float64
				for range int(runs) {
					r := drive(t, &service{kind: kind, retryAfter: retryAfter, limit: func(float64) float64 { return limit }}, 5000, seconds)
					u, no := r.between(from, seconds)
					used, refused = used+u/runs, refused+no/runs
				}
				check(t, name, used, refused)
			}
		}
	}
}

// TestChangingLimit proves that a limit which changes every ten minutes is found
// again: at least 90 % of it is used in the last half of each.
func TestChangingLimit(t *testing.T) {
	changes := []float64{1, .3, .9, 2.7, 1.35, 1}
	limits, kinds := []float64{40}, []string{"bucket", "sliding"}
	if *full {
		limits, kinds = []float64{7, 40, 300}, []string{"bucket", "second", "minute", "sliding", "concurrency"}
	}
	for _, kind := range kinds {
		for _, limit := range limits {
			if kind == "concurrency" && limit < 40 {
				continue
			}
			for _, retryAfter := range []bool{false, true} {
				s := &service{kind: kind, retryAfter: retryAfter, limit: func(second float64) float64 {
					return limit * changes[min(len(changes)-1, int(second)/600)]
				}}
				r := drive(t, s, 5000, 600*len(changes))
				for i := range changes {
					from, to := 600*i+300, 600*i+600
					if kind == "minute" {
						from, to = from-20, to-20
					}
					name := fmt.Sprintf("%s %.3g a second, Retry-After %v", kind, limit*changes[i], retryAfter)
					if used, _ := r.between(from, to); used < 0.90 {
						t.Errorf("%s: used %.1f %%, want 90", name, 100*used)
					}
				}
			}
		}
	}
}

// TestNoLimit proves that the rate goes to its maximum at a service that never
// refuses, and no further.
func TestNoLimit(t *testing.T) {
	r := drive(t, &service{kind: "none", limit: func(float64) float64 { return 1000 }}, 1000, 60)
	if used, _ := r.between(30, 60); used < 0.99 || used > 1.01 || r.rate != 1000 {
		t.Errorf("used %.3f of the maximum, at a rate of %v", used, r.rate)
	}
}

// TestDeadline proves that a caller in the queue returns by its deadline, that one
// who cannot be served in time hears so at once, and that neither costs others.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := New(1, 1), time.Now()
		in := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
		if err := l.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Wait(in(500 * time.Millisecond)); err == nil || time.Since(began) != 0 {
			t.Errorf("%v after %v, want an error at once", err, time.Since(began))
		}
		var callers sync.WaitGroup
		for i := range 3 {
			ctx := in([]time.Duration{time.Minute, 1500 * time.Millisecond, time.Minute}[i])
			callers.Go(func() {
				err := l.Wait(ctx)
				if took := time.Since(began); (err != nil) != (i == 1) || took > 2*time.Second {
					t.Errorf("caller %d: %v after %v", i, err, took)
				}
			})
			synctest.Wait()
		}
		callers.Wait()
		l.Refused(time.Now(), time.Minute)
		before := time.Now()
		if err := l.Wait(in(30 * time.Second)); err == nil || time.Since(before) != 0 {
			t.Errorf("%v after %v within a Retry-After, want an error at once", err, time.Since(before))
		}
		if err := l.Wait(in(2 * time.Minute)); err != nil || time.Since(before) < time.Minute {
			t.Errorf("%v after %v, want to wait for a minute", err, time.Since(before))
		}
	})
}

// TestIdle proves that callers who pause neither lose what was found nor come
// back with a burst.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(1, 1000)
		s := &service{kind: "bucket", began: time.Now(), limit: func(float64) float64 { return 40 }}
		send := func(d time.Duration) (accepted, refused int, found rate.Limit) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			for l.Wait(ctx) == nil {
				sent := time.Now()
				if ok, _ := s.ask(); ok {
					l.Accepted(sent)
					accepted++
				} else {
					l.Refused(sent, 0)
					refused++
				}
				found = max(found, l.Rate())
			}
			return accepted, refused, l.Rate()
		}
		_, _, found := send(5 * time.Minute)
		for _, idle := range []time.Duration{10 * time.Second, time.Hour} {
			time.Sleep(idle)
			accepted, refused, after := send(2 * time.Minute)
			if accepted < 120*36 || float64(refused) > 0.02*float64(accepted+refused) || after < 0.8*found {
				t.Errorf("after %v of nothing: %d accepted, %d refused, rate %.1f, before %.1f", idle, accepted, refused, after, found)
			}
		}
		// A few requests an hour, one of which is refused, do not make the rate a few
		// an hour.
		for range 20 {
			time.Sleep(5 * time.Minute)
			if l.Wait(t.Context()) != nil {
				t.Fatal("no leave")
			}
			l.Accepted(time.Now())
		}
		time.Sleep(5 * time.Minute)
		l.Refused(time.Now(), 0)
		if l.Rate() < 0.8*found {
			t.Errorf("rate %.1f after little traffic, before %.1f", l.Rate(), found)
		}
	})
}
