package flow_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/flow"
)

const took = 100 * time.Millisecond

// send sends a request that ends as res says, after the time that it took.
func send(t *testing.T, w *flow.Window, r flow.Request, says flow.Says) {
	t.Helper()
	release, err := w.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(took)
	release(flow.Result{Says: says, Took: took})
}

// down sends failures of different requests until the service counts as down.
func down(t *testing.T, w *flow.Window) (pause *flow.Pause) {
	t.Helper()
	for range 30 {
		if w.Down() != nil {
			t.Fatal("down too early")
		}
		send(t, w, flow.Request{}, flow.Failure)
	}
	if err := w.Down(); !errors.As(err, &pause) {
		t.Fatal(err)
	}
	return pause
}

// Thirty failures of different requests in a row are an outage. Nothing is sent but a probe, and one
// success ends it.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := flow.New(nil)
		pause := down(t, w)
		if _, err := w.Acquire(t.Context(), flow.Request{}); !errors.As(err, &pause) {
			t.Fatal(err)
		}
		time.Sleep(time.Until(pause.Until))
		release, err := w.Acquire(t.Context(), flow.Request{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second) // far longer than a response takes
		if w.Down() == nil {
			t.Error("a second probe leaves beside the first one")
		}
		release(flow.Result{Says: flow.Success, Took: took})
		if err := w.Down(); err != nil {
			t.Error(err)
		}
		<-pause.Over
	})
}

// Failures of one refund count once, and a success between failures means that the service works.
func TestWhatIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := flow.New(nil)
		for range 100 {
			send(t, w, flow.Request{Of: 1}, flow.Failure)
		}
		send(t, w, flow.Request{}, flow.Success)
		for range 10 {
			for range 29 {
				send(t, w, flow.Request{}, flow.Failure)
			}
			send(t, w, flow.Request{}, flow.Success)
		}
		if s := w.State(); !s.PausedUntil.IsZero() || s.Level > 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A probe that was not sent makes room for the next one.
func TestProbeThatIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := flow.New(nil)
		time.Sleep(time.Until(down(t, w).Until))
		send(t, w, flow.Request{}, flow.Nothing)
		if err := w.Down(); err != nil {
			t.Error(err)
		}
	})
}

// limited returns a window that lets one request be in flight, which release ends.
func limited(t *testing.T) (w *flow.Window, release func(flow.Result)) {
	t.Helper()
	w = flow.New(nil)
	send(t, w, flow.Request{}, flow.Success)
	for range 3 {
		send(t, w, flow.Request{}, flow.Overload)
	}
	time.Sleep(time.Second)
	release, err := w.Acquire(t.Context(), flow.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return w, release
}

// A call waits for a place as long as its deadline leaves time for a response. With a place it is sent
// however little time is left.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, release := limited(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := w.Acquire(ctx, flow.Request{})
		if waited := time.Since(began); !errors.Is(err, flow.ErrTooLate) || waited < time.Second/2 || waited > time.Second-took {
			t.Errorf("after %v: %v", waited, err)
		}
		release(flow.Result{Says: flow.Success, Took: took})
		time.Sleep(time.Second)
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := w.Acquire(short, flow.Request{}); err != nil {
			t.Error(err)
		}
	})
}

// Retries go to the front of the line, and others keep their order.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, release := limited(t)
		order := make(chan string, 3)
		for _, c := range []struct {
			name string
			flow.Request
		}{{"first", flow.Request{}}, {"second", flow.Request{}}, {"retry", flow.Request{Retry: true}}} {
			go func() {
				release, err := w.Acquire(t.Context(), c.Request)
				if err != nil {
					t.Error(err)
					return
				}
				order <- c.name
				time.Sleep(took)
				release(flow.Result{Says: flow.Success, Took: took})
			}()
			synctest.Wait()
		}
		release(flow.Result{Says: flow.Success, Took: took})
		for _, want := range []string{"retry", "first", "second"} {
			if got := <-order; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		time.Sleep(took)
	})
}
