package flow

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

const roundTrip = 50 * time.Millisecond

// TestRandomServices draws services that change their ways, and finds out whether the
// window comes to terms with each: it neither stands still nor runs into it.
func TestRandomServices(t *testing.T) {
	schedules := 2000
	if testing.Short() {
		schedules = 100
	}
	for seed := range uint64(schedules) {
		random := rand.New(rand.NewPCG(seed, 3))
		l := load{requests: 1000, concurrency: 1 + random.IntN(64), jitter: random.Float64(), rtt: time.Duration(5+random.IntN(300)) * time.Millisecond, patient: random.IntN(2) == 0, giveUp: -1}
		l.again = l.patient
		var phases []service
		for range 1 + random.IntN(3) {
			switch random.IntN(6) {
			case 0:
				phases = append(phases, atMost(1+random.IntN(40)))
			case 1:
				phases = append(phases, bucket(1+60*random.Float64(), 1+random.IntN(20)))
			case 2:
				phases = append(phases, share(seed, random.Float64()/5))
			case 3:
				phases = append(phases, share(seed, 1))
			case 4:
				phases = append(phases, window(time.Duration(1+random.IntN(60))*time.Second, 20+random.IntN(200)))
			case 5:
				phases = append(phases, share(seed, 0))
			}
		}
		phases = append(phases, share(seed, 0)) // it recovers
		length := time.Duration(10+random.IntN(200)) * time.Second
		bad := 0
		r := run(t, seed, l, func(now time.Duration, n int) bool {
			failed := phases[min(int(now/length), len(phases)-1)](now, n)
			if failed {
				bad++
			}
			return failed
		})
		if r.left > 0 || r.took > 4*length+20*time.Minute {
			t.Errorf("seed %d: %d left after %v", seed, r.left, r.took)
		}
		if r.failed > 350 {
			t.Errorf("seed %d: %d of %d failed", seed, r.failed, r.sent)
		}
	}
}

// A service that fails a large share of what it gets, and all beyond a limit, too, is not run
// into without end.
func TestChanceBesideALimit(t *testing.T) {
	schedules := 1000
	if testing.Short() {
		schedules = 100
	}
	const requests = 500
	for seed := range uint64(schedules) {
		random := rand.New(rand.NewPCG(seed, 5))
		l := load{requests: requests, concurrency: 1 + random.IntN(64), jitter: random.Float64(), rtt: time.Duration(5+random.IntN(300)) * time.Millisecond, patient: true, again: true, giveUp: -1}
		p := 0.8 * random.Float64()
		chance, limit := share(seed, p), atMost(1+random.IntN(4))
		if random.IntN(2) == 0 {
			limit = bucket(2+40*random.Float64(), 1+random.IntN(5))
		}
		most := int(3*requests/(1-p)) + 200
		r := run(t, seed, l, func(now time.Duration, n int) bool {
			if most--; most < 0 {
				return false
			}
			beyond := limit(now, n)
			return chance(now, n) || beyond
		})
		if most < 0 {
			t.Errorf("seed %d: %d failed of %d, %.2f of them by chance", seed, r.failed, r.sent, p)
		}
	}
}

// A service that answers is not paused for a request that hangs, nor for its own first
// failure, and a process that starts in an outage finds that out with two requests.
func TestTheFirstRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false, nil)
		w.Take() // and never comes back
		for i := range 3 {
			if _, ok := w.Take(); ok {
				t.Errorf("a request after %d seconds", i)
			}
			time.Sleep(time.Until(w.Due(time.Time{})))
			request, ok := w.Take()
			if !ok {
				t.Fatalf("no request after %d seconds", i+1)
			}
			defer w.Ignored(request)
		}
		w = New(false, nil)
		for i := range 2 {
			request, ok := w.Take()
			if !ok {
				t.Fatalf("no request %d", i)
			}
			w.Failed(request, "server_error")
		}
		if _, ok := w.Take(); ok || !w.State().Paused || w.State().Why != "server_error" {
			t.Errorf("%+v", w.State())
		}
	})
}

// Whoever was refused a place and asks a little later when one is due is not told to wait for
// a result.
func TestDueAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false, nil)
		for range 3 {
			request, _ := w.Take()
			time.Sleep(time.Second)
			w.Succeeded(request, time.Second)
		}
		request, _ := w.Take()
		w.Failed(request, "503")
		if _, ok := w.Take(); ok {
			t.Fatal("no pace after a failure")
		}
		due := w.Due(time.Time{})
		if time.Sleep(time.Until(due) + time.Microsecond); w.Due(time.Time{}).IsZero() {
			t.Error("the place that was due is not free without a result")
		}
		later := time.Now().Add(time.Hour)
		if due := w.Due(later); !due.Equal(later) {
			t.Errorf("due %v before the time", time.Until(due))
		}
		if _, ok := w.Take(); !ok {
			t.Error("the place that was due is not free")
		}
		if due := w.Due(time.Time{}); !due.IsZero() {
			t.Errorf("due in %v, beside a request in flight", time.Until(due))
		}
	})
}

// A process that starts while the service hangs finds that out with seven requests.
func TestTheFirstRequestsHang(t *testing.T) {
	for _, timeout := range []time.Duration{3 * time.Second, 35 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w, sent := New(false, nil), 0
			for !w.State().Paused && sent < 100 {
				if request, ok := w.Take(); ok {
					sent++
					time.AfterFunc(timeout, func() { w.Failed(request, "timeout") })
					continue
				}
				time.Sleep(100 * time.Millisecond)
			}
			if time.Sleep(timeout); sent > 7 {
				t.Errorf("a timeout of %v: %d requests before the pause", timeout, sent)
			}
		})
	}
}

// What waited for something else looks again before it leaves, and a probe may leave.
func TestRecheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false, nil)
		first, _ := w.Take()
		time.Sleep(time.Second)
		second, _ := w.Take()
		time.Sleep(time.Second)
		waits, _ := w.Take()
		if err := w.Recheck(waits); err != nil {
			t.Error(err)
		}
		w.Failed(first, "timeout")
		w.Failed(second, "timeout")
		time.Sleep(time.Until(w.Due(time.Time{})))
		fourth, _ := w.Take()
		time.Sleep(time.Second)
		last, _ := w.Take()
		w.Failed(fourth, "timeout")
		for _, request := range []int{waits, last} {
			var pause *Pause
			if err := w.Recheck(request); !errors.As(err, &pause) || pause.Left <= 0 || pause.Why != "timeout" {
				t.Errorf("%d of %d: %v in %+v", request, last, err, w.State())
			}
			w.Ignored(request)
		}
		time.Sleep(time.Until(w.Due(time.Time{})))
		probe, ok := w.Take()
		if err := w.Recheck(probe); !ok || err != nil {
			t.Errorf("no probe: %v", err)
		}
		w.Answered(probe) // by somebody else than the service
		if delay := time.Until(w.Due(time.Time{})); !w.State().Paused || delay > time.Second {
			t.Errorf("%+v, next in %v", w.State(), delay)
		}
	})
}

// An idle window forgets, and a pause that was none can be ended.
func TestForgetAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false, nil)
		fail := func(times int) {
			for range times {
				if request, ok := w.Take(); ok {
					w.Failed(request, "forbidden")
				}
			}
		}
		fail(2)
		changed := w.Changed()
		if w.Resume(); w.State().Paused || !w.IsFree() {
			t.Errorf("%+v", w.State())
		}
		select {
		case <-changed:
		default:
			t.Error("who waits for a place does not hear of the end of the pause")
		}
		request, _ := w.Take()
		w.Succeeded(request, roundTrip)
		fail(1)
		low := w.State().Level
		time.Sleep(2 * memory)
		request, ok := w.Take()
		if now := w.State().Level; !ok || now != 1 || now < low {
			t.Errorf("level %v after %v", now, low)
		}
		w.Ignored(request)
	})
}

// Requests that wait have their places in order, and none waits for a probe.
func TestWaitEndsWithAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false, nil)
		first, err := w.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		for range 3 {
			go func() {
				_, err := w.Wait(t.Context())
				ended <- err
			}()
		}
		synctest.Wait() // they wait for the first result
		w.Failed(first, "server")
		synctest.Wait() // one of them has a place
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		w.Failed(first+1, "server")
		for range 2 {
			var pause *Pause
			if err := <-ended; !errors.As(err, &pause) || pause.Left <= 0 || pause.Left > time.Second || pause.Why != "server" {
				t.Errorf("%v", err)
			}
		}
		state := w.State()
		if !state.Paused || state.Since != time.Now() {
			t.Errorf("%+v", state)
		}
		time.Sleep(time.Until(state.Next))
		probe, err := w.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := w.Take(); ok {
			t.Error("a second probe")
		}
		w.Succeeded(probe, time.Millisecond)
		if w.State().Paused {
			t.Error("still paused")
		}
	})
}
