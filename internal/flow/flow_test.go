package flow

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

const roundTrip = 50 * time.Millisecond

// TestRandomServices draws services that change their ways, and finds out whether the
// window comes to terms with each: it neither stands still nor runs into it. Its seeds are fixed.
func TestRandomServices(t *testing.T) {
	schedules := 500 * *seeds
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
// into without end. Its seeds are fixed.
func TestChanceBesideALimit(t *testing.T) {
	schedules := 250 * *seeds
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

// A process that starts has ten requests in flight, and more only if these hang. It finds an
// outage with those.
func TestTheFirstRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false, nil)
		take := func() (taken []int) {
			for {
				request, ok := w.Take()
				if !ok {
					return taken
				}
				taken = append(taken, request)
			}
		}
		all := take()
		for _, more := range []int{0, 10, 20, 0} {
			if n := len(all); more > 0 {
				time.Sleep(time.Until(w.Due(time.Time{})))
				if all = append(all, take()...); len(all) != n+more {
					t.Errorf("%d more after %d", len(all)-n, n)
				}
			}
		}
		if time.Sleep(time.Hour); len(all) != 40 || len(take()) > 0 {
			t.Errorf("%d in flight while all hang", len(all))
		}

		w = New(false, nil)
		all = take()
		for _, request := range all {
			w.Failed(request, 0, "server_error")
		}
		if _, ok := w.Take(); ok || len(all) != 10 || !w.State().Paused || w.State().Why != "server_error" {
			t.Errorf("after %d requests: %+v", len(all), w.State())
		}
	})
}

// atAPace returns a window whose requests leave at a pace, because half of them fail.
func atAPace(t *testing.T) *Window {
	w := New(false, nil)
	for i := range 100 { // that is no chance
		request, ok := w.Take()
		if !ok {
			break
		}
		if time.Sleep(time.Second); i%2 == 0 {
			w.Succeeded(request, time.Second)
		} else {
			w.Failed(request, 0, "503")
		}
	}
	if _, ok := w.Take(); ok {
		t.Fatal("no pace after 50 failures")
	}
	return w
}

// Whoever was refused a place and asks a little later when one is due is not told to wait for
// a result.
func TestDueAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := atAPace(t)
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
		if left := time.Until(w.Due(time.Time{})); left < time.Second {
			t.Errorf("due in %v, beside a request in flight", left)
		}
	})
}

// Timers that fire a little late do not slow the pace. What was late for another reason is not
// caught up with.
func TestPaceOfLateTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := atAPace(t)
		for _, late := range []time.Duration{0, 3 * time.Millisecond / 2, 5 * time.Millisecond / 2} {
			due, gap := w.Due(time.Time{}), w.gap()
			if time.Sleep(time.Until(due) + late); late > 2*time.Millisecond {
				due = time.Now()
			}
			request, ok := w.Take()
			if !ok {
				t.Fatal("no place when it was due")
			}
			if w.Ignored(request, 0); !w.Due(time.Time{}).Equal(due.Add(gap)) {
				t.Errorf("taken %v late: the next is due in %v, with a gap of %v", late, time.Until(w.Due(time.Time{})), gap)
			}
		}
	})
}

// While nothing has failed, requests that hang hold up the others for a second, also if the service
// takes much longer as a rule.
func TestWaitBesideRequestsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency = 4 * time.Second
		w := New(false, nil)
		for range 2 {
			var requests []int
			for range first {
				requests = append(requests, mustTake(t, w))
			}
			time.Sleep(latency)
			for _, request := range requests {
				w.Succeeded(request, latency)
			}
			w.Answered(mustTake(t, w))
		}
		for {
			if _, ok := w.Take(); !ok {
				break
			}
		}
		began := time.Now()
		if _, err := w.Wait(t.Context(), 0); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("a place after %v, %v", time.Since(began), err)
		}
	})
}

func mustTake(t *testing.T, w *Window) int {
	t.Helper()
	request, ok := w.Take()
	if !ok {
		t.Fatal("no place")
	}
	return request
}

// A process that starts while the service hangs finds that out with forty requests.
func TestTheFirstRequestsHang(t *testing.T) {
	for _, timeout := range []time.Duration{3 * time.Second, 35 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w, sent := New(false, nil), 0
			for !w.State().Paused && sent < 100 {
				if request, ok := w.Take(); ok {
					sent++
					time.AfterFunc(timeout, func() { w.Failed(request, timeout, "timeout") })
					continue
				}
				time.Sleep(100 * time.Millisecond)
			}
			if time.Sleep(timeout); sent > 40 {
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
		w.Failed(first, 0, "timeout")
		w.Failed(second, 0, "timeout")
		time.Sleep(time.Until(w.Due(time.Time{})))
		fourth, _ := w.Take()
		time.Sleep(time.Second)
		last, _ := w.Take()
		w.Failed(fourth, 0, "timeout")
		for _, request := range []int{waits, last} {
			var pause *Pause
			if err := w.Recheck(request); !errors.As(err, &pause) || pause.Left <= 0 || pause.Why != "timeout" {
				t.Errorf("%d of %d: %v in %+v", request, last, err, w.State())
			}
			w.Ignored(request, 0)
		}
		time.Sleep(time.Until(w.Due(time.Time{})))
		probe, ok := w.Take()
		if err := w.Recheck(probe); !ok || err != nil {
			t.Errorf("no probe: %v", err)
		}
		w.Ignored(probe, 0) // it did not leave
		if probe, ok = w.Take(); !ok {
			t.Error("nothing has been sent, and there is no other probe")
		}
		w.Answered(probe) // by somebody else than the service
		if delay := time.Until(w.Due(time.Time{})); !w.State().Paused || delay > time.Second || delay < time.Second/2 {
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
					w.Failed(request, 0, "forbidden")
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
		if now := w.State().Level; !ok || now != 10 || now < low {
			t.Errorf("level %v after %v", now, low)
		}
		w.Ignored(request, 0)
	})
}

// Failures in a row are an outage however long it takes until the next request fails: otherwise a
// service that is asked every few minutes would fail for ever.
func TestFailuresFarApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false, nil)
		for range 20 {
			request, _ := w.Take()
			time.Sleep(roundTrip)
			w.Succeeded(request, roundTrip)
		}
		began := time.Now().Add(2 * memory)
		for range 3 {
			time.Sleep(2 * memory)
			request, ok := w.Take()
			if !ok {
				t.Fatal("no place")
			}
			w.Failed(request, roundTrip, "503")
		}
		if s := w.State(); !s.Paused || !s.Since.Equal(began) {
			t.Errorf("after three failures in a row since %v: %+v", began, s)
		}
	})
}

// One lucky response to a lone request does not change what is usual: calls that wait would leave too
// late.
func TestOneLuckyResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false, nil)
		for i := range 60 {
			request, ok := w.Take()
			if !ok {
				t.Fatal("no place")
			}
			took := 4 * time.Second
			if i%10 == 9 {
				took = 20 * time.Millisecond
			}
			time.Sleep(took)
			if w.Succeeded(request, took); i > 40 && w.Usual() < 3500*time.Millisecond {
				t.Fatalf("%v is usual after %d requests", w.Usual(), i)
			}
		}
	})
}

// An outage that has ended is forgotten while no request waits for a place: one failure is no outage
// then.
func TestOneFailureLongAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false, nil)
		one := func(failed bool) {
			time.Sleep(roundTrip)
			request, ok := w.Take()
			for ; !ok; request, ok = w.Take() {
				time.Sleep(time.Until(w.State().Next))
			}
			time.Sleep(roundTrip)
			if failed {
				w.Failed(request, roundTrip, "503")
			} else {
				w.Succeeded(request, roundTrip)
			}
		}
		for range 20 {
			one(false)
		}
		for range 5 {
			one(true)
		}
		if !w.State().Paused {
			t.Fatal("no outage")
		}
		for range 30 {
			one(false)
			time.Sleep(time.Second)
		}
		if one(true); w.State().Paused {
			t.Errorf("after one failure: %+v", w.State())
		}
	})
}

// Requests that wait have their places in order, and none waits for a probe.
func TestWaitEndsWithAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false, nil)
		var first int
		for range 10 {
			var err error
			if first, err = w.Wait(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error)
		for range 3 {
			go func() {
				_, err := w.Wait(t.Context(), 0)
				ended <- err
			}()
		}
		synctest.Wait() // they wait for the first result
		w.Failed(first-1, 0, "server")
		w.Failed(first, 0, "server")
		for range 3 {
			var pause *Pause
			if err := <-ended; !errors.As(err, &pause) || pause.Left <= 0 || pause.Left > time.Second || pause.Why != "server" {
				t.Errorf("%v", err)
			}
		}
		state := w.State()
		if !state.Paused || state.Since != time.Now() {
			t.Errorf("%+v", state)
		}
		for request := range first - 1 {
			if request > 0 {
				w.Ignored(request, 0)
			}
		}
		time.Sleep(time.Until(state.Next))
		probe, err := w.Wait(t.Context(), 0)
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

// A request that has waited is not sent too late. One that finds a place at once is, whatever
// its deadline is.
func TestTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(false, nil)
		for range 9 {
			request, _ := w.Take()
			time.AfterFunc(time.Second, func() { w.Succeeded(request, time.Second) })
		}
		if time.Sleep(2 * time.Second); w.Usual() != time.Second {
			t.Fatalf("usual %v", w.Usual())
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		for range 10 {
			if _, err := w.Wait(soon, 0); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		later, cancel := context.WithTimeout(t.Context(), 3*time.Second/2)
		defer cancel()
		if _, err := w.Wait(later, 0); !errors.Is(err, ErrTooLate) || time.Since(began) != time.Second/2 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		deadline := time.Now().Add(time.Second / 2)
		if !w.TooLate(deadline, time.Second/15) || w.TooLate(deadline, time.Second/25) || w.TooLate(deadline.Add(time.Second), time.Second) {
			t.Error("what waited, or what did not")
		}
	})
}
