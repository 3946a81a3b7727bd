package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// TestBuried: a mark is in doubt when its request is over, and its worker has not
// written the outcome down. Only then it is sent again by itself.
func TestBuried(t *testing.T) {
	for _, test := range []struct {
		resubmit  bool
		want, log string
	}{{false, "unknown sending", ""}, {true, "pending sending", "resubmit"}} {
		s := newSystem(t)
		s.enqueue(refund("a", 5), refund("b", 5))
		s.take(1)
		s.take(2)
		s.w.Resubmit = test.resubmit
		s.set(`UPDATE outbox_refund SET sent_at = $1 WHERE id = 1`, timeText(time.Now().Add(-submitTimeout)))
		if err := s.w.bury(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.check(test.want)
		s.checkLog(test.log)
	}
}

// TestTooEarly: nothing is sent again, or said not to be there, while the request can still
// leave a worker that was frozen. A decision needs a name, and one of the verdicts.
func TestTooEarly(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5))
	s.attempt(1, sandbox.Fault{Drop: true})
	chosen, err := s.box.List(t.Context(), Unknown)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []Verdict{Resubmit, Closed, NotRecorded} {
		if n, err := s.box.Decide(t.Context(), chosen, what, "ann", ""); n != 0 || !errors.Is(err, ErrTooEarly) || !strings.Contains(err.Error(), "row 1: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for by, what := range map[string]Verdict{"": Recorded, "ann": Verdict(eventAccepted)} {
		if n, err := s.box.Decide(t.Context(), chosen, what, by, ""); n != 0 || err == nil {
			t.Errorf("%q said %s: %d, %v", by, what, n, err)
		}
	}
	c := s.compare(Report{Until: time.Now(), Rows: []ReportRow{row(1, "acct", "z", 5, "EUR")}})
	if c.NotCovered != 1 || len(c.NotFound) != 0 {
		t.Errorf("%+v", c)
	}
	s.check("unknown")
}

// TestOldMark: a request does not leave a minute after it was begun, and is not marked
// when little of that is left.
func TestOldMark(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5))
	for _, age := range []time.Duration{submitTimeout, submitTimeout/2 + time.Second} {
		if c, _, err := s.w.send(t.Context(), 1, time.Now().Add(-age)); c != nil || err != nil || s.requests() != 0 {
			t.Errorf("%+v, %v, %d requests", c, err, s.requests())
		}
	}
	s.check("pending")
}

// TestJobs: a refund gets another job if its own is gone, as after a backup was restored
// or a person deleted it, or if a worker fetched it long ago and did not begin: River keeps
// such a job for longer. One that waits for a decision gets none, and one that a Submit may
// still send.
func TestJobs(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5), refund("b", 5), refund("b", 6), refund("c", 5), refund("d", 5), refund("e", 5))
	s.attempt(2, sandbox.Fault{Drop: true})
	s.set(`DELETE FROM river_job WHERE id <= 3`)
	s.set(`UPDATE outbox_refund SET enqueued_at = $1`, timeText(time.Now().Add(-orphanedAfter)))
	for _, r := range []string{"young", "not due"} {
		b, err := newBooking(Item{AccountID: "acct", Refund: refund(r, 5)})
		if err == nil {
			_, err = s.box.bookOnce(t.Context(), b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.set(`UPDATE outbox_refund SET enqueued_at = $1, next_at = $2 WHERE refund_id = 'not due'`, timeText(time.Now().Add(-orphanedAfter)), timeText(time.Now()))
	for row, ago := range map[int]time.Duration{5: orphanedAfter / 2, 6: 2 * orphanedAfter} {
		s.set(`UPDATE river_job SET state = 'running', attempted_at = $1 WHERE id = $2`, time.Now().Add(-ago).UTC().Format("2006-01-02 15:04:05.999"), row)
	}
	for range 2 { // a second look finds nothing to do
		if err := s.w.adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.column(`SELECT CAST(args->>'row' AS TEXT) FROM river_job ORDER BY 1`); got != "1 4 5 6 6" {
			t.Errorf("the jobs are of the rows %s", got)
		}
	}
}

// TestAdopted: any worker looks for pending refunds that no job will send.
func TestAdopted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *system) {
		s.enqueue(refund("a", 5))
		s.set(`DELETE FROM river_job`)
		s.set(`UPDATE outbox_refund SET enqueued_at = $1`, timeText(time.Now().Add(-orphanedAfter)))
		ctx, end := context.WithTimeout(t.Context(), recoverEvery)
		defer end()
		if err := s.w.watch(ctx); err != nil {
			t.Fatal(err)
		}
		if jobs := s.column(`SELECT CAST(args->>'row' AS TEXT) FROM river_job`); jobs != "1" {
			t.Errorf("the jobs are of the rows %q", jobs)
		}
	})
}

// TestHold: while the client sends nothing, a job waits for as long as it says, but not for
// ever, and not when its worker ends.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopping, stop := context.WithCancel(t.Context())
		w := &worker{Config: Config{Log: quiet}, stopping: stopping}
		for _, test := range []struct{ wait, held, left time.Duration }{
			{0, 3 * time.Second, 0},
			{7 * time.Second, 7 * time.Second, 0},
			{25 * time.Second, heldMost, 15 * time.Second},
		} {
			began := time.Now()
			if left := w.hold(outcome{wait: test.wait}); left != test.left || time.Since(began) != test.held {
				t.Errorf("%+v: held for %v, and %v left", test, time.Since(began), left)
			}
		}
		stop()
		if left := w.hold(outcome{wait: time.Minute}); left != time.Minute {
			t.Errorf("at its end: %v left", left)
		}
	})
}

// TestOrder: records of one refund_id are sent one at a time, in the order of their rows, and
// none while an earlier one is in doubt.
func TestOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *system) {
		s.enqueue(refund("a", 5), refund("a", 6), refund("a", 7))
		waits := func(why string) {
			t.Helper()
			if c, err := take(t.Context(), s.box, 2); c != nil || err != nil {
				t.Fatalf("%s: %+v, %v", why, c, err)
			}
		}
		waits("the first is pending")
		c := s.take(1)
		waits("the first is being sent")
		if err := s.w.recordOnce(t.Context(), c, workerEnded); err != nil {
			t.Fatal(err)
		}
		waits("the first is unknown")
		for _, requests := range []int{0, 2} {
			if s.drain(); s.requests() != requests {
				t.Fatalf("%d requests, want %d", s.requests(), requests)
			}
			if requests == 0 {
				s.decide(Unknown, Recorded)
			}
		}
		if sent := s.fake.Refunds(); !strings.Contains(string(sent[0].Body), `"amount":6`) || !strings.Contains(string(sent[1].Body), `"amount":7`) {
			t.Errorf("%s", sent)
		}
	})
}

// TestStop: a worker that is stopped begins no refund, and writes down the outcomes of those
// that are in flight.
func TestStop(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5), refund("b", 5))
	ctx, stop := context.WithCancel(t.Context())
	s.fake.ScriptFunc(func(sandbox.Request) sandbox.Fault {
		stop()
		return sandbox.Fault{Delay: 10 * time.Millisecond}
	})
	s.w.Concurrency = 1
	if err := s.box.Run(ctx, s.w.Config); err != nil {
		t.Fatal(err)
	}
	s.check("accepted pending")
}

// TestSentAsEnqueued: the body of the request is what was enqueued, to the last digit.
func TestSentAsEnqueued(t *testing.T) {
	s := newSystem(t)
	r := refund("a", 5)
	r.AdditionalData.Metadata = map[string]any{"ledger": json.Number("9007199254740993"), "rate": json.Number("1.10"), "none": nil, "tags": []any{}}
	s.enqueue(r)
	s.attempt(1, sandbox.Fault{})
	want, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if sent := s.fake.Refunds(); len(sent) != 1 || string(sent[0].Body) != string(want) {
		t.Errorf("%s was sent, want %s", sent, want)
	}
}

// TestWaitOfTheService: a refund that was not taken is sent again when the service says so, and not
// begun before. Its job waits for as long.
func TestWaitOfTheService(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5))
	s.fake.Script(sandbox.Fault{Status: 429, RetryAfter: 10 * time.Minute})
	for range 2 {
		err := s.w.Work(t.Context(), &river.Job[submitArgs]{Args: submitArgs{Row: 1}})
		snoozed, ok := strings.CutPrefix(fmt.Sprint(err), "JobSnoozeError: ")
		if wait, invalid := time.ParseDuration(snoozed); !ok || invalid != nil || wait < 9*time.Minute || s.requests() != 1 {
			t.Errorf("%v after %d requests", err, s.requests())
		}
		s.w.rests = nil // another worker has not heard it
	}
	if c, err := take(t.Context(), s.box, 1); c != nil || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
	s.check("pending")
}

// TestAnotherWasFaster: a worker that does not send a refund, because another one has marked it
// meanwhile, changes nothing of it.
func TestAnotherWasFaster(t *testing.T) {
	for name, test := range map[string]struct {
		limiter error
		event   event
	}{"before the mark": {nil, ""}, "and the limiter fails": {errors.New("down"), eventUnsent}} {
		s := newSystem(t)
		s.enqueue(refund("a", 5))
		meanwhile := limiterFunc(func(ctx context.Context) error {
			if err := s.w.recordOnce(ctx, s.take(1), outcome{event: eventDoubted, response: response{reason: "503"}}); err != nil {
				t.Error(err)
			}
			return test.limiter
		})
		s.w.Client = s.client(refunds.WithLimiter(meanwhile))
		if c, result, err := s.w.send(t.Context(), 1, time.Now()); c != nil || err != nil || result.event != test.event {
			t.Errorf("%s: %v, %+v, %v", name, c, result, err)
		}
		s.check("unknown")
		if got := s.column(`SELECT reason FROM outbox_refund`); got != "503" || s.requests() != 0 {
			t.Errorf("%s: the reason is %q after %d requests", name, got, s.requests())
		}
	}
}

type limiterFunc func(context.Context) error

func (f limiterFunc) Wait(ctx context.Context) error { return f(ctx) }
