package outbox

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// submit submits a refund of the account "acct" with a deadline.
func (s *system) submit(deadline time.Duration, r *refunds.Refund) Entry {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), deadline)
	defer cancel()
	e, err := s.box.Submit(ctx, s.w.Client, Item{AccountID: "acct", Refund: r})
	if err != nil {
		s.t.Error(err)
	}
	return e
}

// repeated is the refund as a caller repeats it who does not know when he made it.
func repeated(id string, amount int64) *refunds.Refund {
	r := refund(id, amount)
	r.Created = time.Now().Format(time.RFC3339Nano)
	return r
}

// TestSubmit: a refund is sent once, whatever became of it, and each caller gets the same.
func TestSubmit(t *testing.T) {
	for _, test := range []struct {
		name   string
		fault  sandbox.Fault
		state  State
		reason string
	}{
		{"accepted", sandbox.Fault{Status: 201, Body: new(`{"id":"x"}`)}, Accepted, ""},
		{"rejected", sandbox.Fault{Status: 422}, Rejected, "422 scripted"},
		{"conflict", sandbox.Fault{Status: 409}, Unknown, "409 scripted"},
		{"dropped", sandbox.Fault{Drop: true, Process: true}, Unknown, "no response"},
		{"slow", sandbox.Fault{Delay: time.Hour}, Unknown, "timeout"},
	} {
		inBubble(t, func(t *testing.T, s *system) {
			s.fake.Script(test.fault)
			for _, r := range []*refunds.Refund{refund("a", 5), refund("a", 5), repeated("a", 5)} {
				e := s.submit(time.Minute, r)
				if e.Row != 1 || e.State != test.state || e.Reason != test.reason || (e.Receipt != nil) != (test.state == Accepted) {
					t.Errorf("%s: %+v", test.name, e)
				}
			}
			for _, r := range []*refunds.Refund{refund("a", 6), {RefundID: "a", Currency: "EUR"}, {RefundID: "a", Amount: new(int64(5)), Currency: "USD"}} {
				if e, err := s.box.Submit(t.Context(), s.w.Client, Item{AccountID: "acct", Refund: r}); !errors.Is(err, ErrAmountChanged) || e.Row != 0 {
					t.Errorf("%s: %+v, %v", test.name, e, err)
				}
			}
			s.check(string(test.state))
			if n := s.requests(); n != 1 {
				t.Errorf("%s: %d requests", test.name, n)
			}
			if jobs := s.column(`SELECT CAST(COUNT(*) AS TEXT) FROM river_job`); jobs != "0" {
				t.Errorf("%s: %s jobs", test.name, jobs)
			}
		})
	}
}

// TestSubmitAgain: what was not recorded is sent again when it is due, by the same call if that is
// before its deadline, but not before somebody corrected the set-up.
func TestSubmitAgain(t *testing.T) {
	busy := sandbox.Fault{Status: 429, RetryAfter: 20 * time.Second}
	for _, test := range []struct {
		fault    sandbox.Fault
		deadline time.Duration
		state    State
		reason   string
		took     time.Duration
	}{
		{busy, 30 * time.Second, Accepted, "", 20 * time.Second},
		{busy, 10 * time.Second, Pending, "429 scripted", 0},
		{sandbox.Fault{Status: 401}, 30 * time.Second, Pending, "401 scripted", 0},
	} {
		inBubble(t, func(t *testing.T, s *system) {
			s.fake.Script(test.fault)
			began := time.Now()
			e := s.submit(test.deadline, refund("a", 5))
			if took := time.Since(began); e.State != test.state || e.Reason != test.reason || took != test.took {
				t.Errorf("%+v after %v", e, took)
			}
			if e.State == Accepted {
				return
			}
			if early := s.submit(time.Millisecond, repeated("a", 5)); early.State != Pending || !early.NextAt.After(time.Now()) || s.requests() != 1 {
				t.Errorf("%+v; %d requests", early, s.requests())
			}
			time.Sleep(time.Until(e.NextAt))
			if e := s.submit(time.Minute, repeated("a", 5)); e.State != Accepted || e.Attempts != 2 || !e.NextAt.IsZero() {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestSubmitInOutage: what the client does not send is pending, and says why.
func TestSubmitInOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, s *system) {
		limit := errors.New("no more today")
		var err error
		s.w.Client = s.client(refunds.WithLimiter(limiterFunc(func(context.Context) error { return limit })))
		e := s.submit(time.Millisecond, refund("a", 5))
		if e.State != Pending || e.Reason != "local limit" || e.NextAt.IsZero() || e.Attempts != 0 || err != nil {
			t.Errorf("%+v, %v", e, err)
		}
		limit = nil
		if e := s.submit(time.Minute, refund("a", 5)); e.State != Accepted {
			t.Errorf("%+v", e)
		}
	})
}

// TestCallersOfOneProcess: callers of a refund wait for one attempt together, also before it is sent.
func TestCallersOfOneProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, s *system) {
		var turns atomic.Int32
		s.w.Client = s.client(refunds.WithLimiter(limiterFunc(func(context.Context) error {
			turns.Add(1)
			time.Sleep(10 * time.Second)
			return nil
		})))
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() {
				if e := s.submit(time.Minute, repeated("a", 5)); e.State != Accepted {
					t.Errorf("%+v", e)
				}
			})
		}
		callers.Wait()
		if turns.Load() != 1 {
			t.Errorf("the limiter let %d go", turns.Load())
		}
	})
}

// TestLeave: a caller who leaves ends no request, another one waits on, in this process or in
// another one, and Close waits for what is in flight.
func TestLeave(t *testing.T) {
	inBubble(t, func(t *testing.T, s *system) {
		s.fake.Script(sandbox.Fault{Delay: 20 * time.Second})
		for _, deadline := range []time.Duration{time.Second, time.Second} {
			if e := s.submit(deadline, repeated("a", 5)); e.State != Sending {
				t.Errorf("%+v", e)
			}
		}
		other, db, err := openFile(s.file)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		e, err := other.Submit(t.Context(), s.w.Client, Item{AccountID: "acct", Refund: repeated("a", 5)})
		if err != nil || e.State != Accepted || s.requests() != 1 {
			t.Errorf("%+v, %v", e, err)
		}

		s.fake.Script(sandbox.Fault{Delay: 20 * time.Second})
		s.submit(time.Second, refund("b", 5))
		ended, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if err := s.box.Close(ended); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		s.check("accepted sending")
		if err := s.box.Close(t.Context()); err != nil {
			t.Error(err)
		}
		s.check("accepted accepted")
		if e, err := s.box.Submit(t.Context(), s.w.Client, Item{AccountID: "acct", Refund: refund("c", 5)}); err == nil {
			t.Errorf("%+v after Close", e)
		}
	})
}

// TestLeaveBeforeTheRequest: what still waits for the client when its last caller leaves is not sent.
func TestLeaveBeforeTheRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, s *system) {
		s.w.Client = s.client(refunds.WithLimiter(limiterFunc(func(ctx context.Context) error {
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
			}
			return ctx.Err()
		})))
		submit := func(deadline, took time.Duration, want State) {
			t.Helper()
			began := time.Now()
			if e := s.submit(deadline, repeated("a", 5)); e.State != want || time.Since(began) != took {
				t.Errorf("%+v after %v", e, time.Since(began))
			}
		}
		submit(time.Second, time.Second, Pending)
		time.Sleep(2 * time.Minute)
		s.check("pending")
		var other sync.WaitGroup
		other.Go(func() { submit(time.Minute, 10*time.Second, Accepted) })
		time.Sleep(time.Second)
		submit(2*time.Second, 2*time.Second, Pending)
		other.Wait()
		if s.requests() != 1 {
			t.Errorf("%d requests", s.requests())
		}
	})
}

// TestCloseBeginsNone: what still waits for the client when the outbox is closed is not sent.
func TestCloseBeginsNone(t *testing.T) {
	inBubble(t, func(t *testing.T, s *system) {
		s.w.Client = s.client(refunds.WithLimiter(limiterFunc(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})))
		time.AfterFunc(time.Second, func() {
			if err := s.box.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		if e := s.submit(time.Minute, refund("a", 5)); e.State != Pending || time.Since(began) != time.Second || s.requests() != 0 {
			t.Errorf("%+v after %v", e, time.Since(began))
		}
	})
}

// TestOverdue: a refund whose process is dead is unknown for all who look, a minute after its mark,
// without a worker, and can be decided about. Get writes nothing.
func TestOverdue(t *testing.T) {
	inBubble(t, func(t *testing.T, s *system) {
		s.enqueue(refund("a", 5))
		s.take(1)
		get := func() Entry {
			t.Helper()
			found, err := s.box.Get(t.Context(), "acct", "a")
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			return found[0]
		}
		if e := get(); e.State != Sending {
			t.Errorf("%+v", e)
		}
		began := time.Now()
		e := s.submit(2*time.Minute, repeated("a", 5))
		if took := time.Since(began); e.State != Unknown || took < submitTimeout || took > submitTimeout+pollMost || s.requests() != 0 {
			t.Errorf("%+v after %v", e, took)
		}
		status, err := s.box.Status(t.Context())
		listed, listing := s.box.List(t.Context(), Unknown)
		if sending, err := s.box.List(t.Context(), Sending, Pending); len(sending) != 0 || err != nil {
			t.Errorf("%+v, %v", sending, err)
		}
		if err != nil || listing != nil || status.Counts[Unknown] != 1 || status.Counts[Sending] != 0 || len(listed) != 1 ||
			status.Reasons[0] != (Reason{Unknown, "the worker ended", 1}) || get().State != Unknown || get().Reason != "the worker ended" {
			t.Errorf("%+v, %v, %v", status, listed, get())
		}
		s.check("sending")
		if n, err := s.box.Decide(t.Context(), listed, NotRecorded, "ann", ""); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if e := s.submit(time.Minute, repeated("a", 5)); e.State != Accepted || e.Attempts != 2 {
			t.Errorf("%+v", e)
		}
	})
}

// TestSubmitUpdate: an update goes through Enqueue, and its content is then about the update.
func TestSubmitUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *system) {
		s.fake.Script(sandbox.Fault{Status: 422})
		s.submit(time.Minute, refund("a", 5))
		corrected := repeated("a", 6)
		if e, err := s.place(Item{"acct", corrected, false}); err != nil || e.Row != 2 {
			t.Errorf("%+v, %v", e, err)
		}
		if e := s.submit(time.Minute, corrected); e.Row != 2 || e.State != Accepted {
			t.Errorf("%+v", e)
		}
		if e := s.submit(time.Minute, refund("a", 5)); e.Row != 1 || e.State != Rejected {
			t.Errorf("%+v", e)
		}
	})
}

// TestSubmitRefuses: what cannot be sent is not booked, and nothing in a file that can lose commits.
func TestSubmitRefuses(t *testing.T) {
	s := newSystem(t)
	for name, item := range map[string]Item{
		"no account": {Refund: refund("a", 5)},
		"no refund":  {AccountID: "acct"},
		"no id":      {AccountID: "acct", Refund: refund("", 5)},
		"a change":   {AccountID: "acct", Refund: refund("a", 5), AllowChange: true},
	} {
		if e, err := s.box.Submit(t.Context(), s.w.Client, item); !errors.Is(err, refunds.ErrInvalidArgument) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	sound := Item{AccountID: "acct", Refund: refund("a", 5)}
	if e, err := s.box.Submit(t.Context(), nil, sound); !errors.Is(err, refunds.ErrInvalidArgument) {
		t.Errorf("%+v, %v", e, err)
	}
	s.set(`PRAGMA synchronous = NORMAL`)
	s.w.Drain = true
	_, submitting := s.box.Submit(t.Context(), s.w.Client, sound)
	for _, err := range []error{submitting, s.box.Run(t.Context(), s.w.Config)} {
		if err == nil || !strings.Contains(err.Error(), "synchronous") {
			t.Error(err)
		}
	}
	s.check("")
}
