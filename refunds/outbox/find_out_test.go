package outbox

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// unknown leaves one refund without a clear response.
func (s *system) unknown() {
	s.t.Helper()
	s.enqueue(refund("a", 5))
	c := s.take(1)
	if err := s.w.recordOnce(s.t.Context(), c, outcome{event: eventDoubted, response: response{reason: "503"}}); err != nil {
		s.t.Fatal(err)
	}
	s.w.FindOutFor, s.w.Concurrency = 24*time.Hour, 4
}

// sentAgo makes the only refund and its request so old, and the last question about it, too.
func (s *system) sentAgo(d time.Duration) {
	s.set(`UPDATE outbox_refund SET enqueued_at = $1, sent_at = $1`, timeText(time.Now().Add(-d)))
	s.set(`DELETE FROM outbox_question`)
}

// question is the one that is due about a refund that has been unknown for an hour.
func (s *system) question() Entry {
	s.t.Helper()
	s.unknown()
	s.sentAgo(time.Hour)
	due, err := s.w.due(s.t.Context(), 10)
	if err != nil || len(due) != 1 {
		s.t.Fatal(due, err)
	}
	return due[0]
}

// askOnce asks about what is due.
func (s *system) askOnce() (asked int) {
	s.t.Helper()
	due, err := s.w.due(s.t.Context(), 10)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range due {
		s.w.ask(s.t.Context(), e)
	}
	return len(due)
}

// TestFindOut: what an answer leads to, and what of that is a decision.
func TestFindOut(t *testing.T) {
	says := func(v Verdict, err error) func(context.Context, Entry) (Verdict, error) {
		return func(context.Context, Entry) (Verdict, error) { return v, err }
	}
	for name, test := range map[string]struct {
		findOut       func(context.Context, Entry) (Verdict, error)
		resubmit      bool
		want, log     string
		reason, fails string
	}{
		"recorded":                 {says(Recorded, nil), false, "accepted", "accepted", "503", ""},
		"not recorded":             {says(NotRecorded, nil), false, "unknown", "", "503" + saidNotRecorded, ""},
		"not recorded, sent again": {says(NotRecorded, nil), true, "pending", "not recorded", "503", ""},
		"not known":                {says("", nil), true, "unknown", "", "503", ""},
		"an error":                 {says(Recorded, errors.New("a ledger is down")), true, "unknown", "", "503", "a ledger is down"},
		"no answer":                {says(Resubmit, nil), true, "unknown", "", "503", `"resubmit", which is no answer`},
		"a panic":                  {func(context.Context, Entry) (Verdict, error) { panic("ouch") }, true, "unknown", "", "503", "panicked: ouch"},
		"the end of its goroutine": {func(context.Context, Entry) (Verdict, error) { runtime.Goexit(); return Recorded, nil }, true, "unknown", "", "503", "ended its goroutine"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			s.unknown()
			var logged strings.Builder
			s.w.Log = slog.New(slog.NewTextHandler(&logged, nil))
			s.w.FindOut, s.w.ResubmitNotRecorded = test.findOut, test.resubmit
			for range 2 { // the same answer again changes nothing
				s.sentAgo(time.Hour)
				s.askOnce()
			}
			s.check(test.want)
			s.checkLog(test.log)
			if got := s.column(`SELECT reason FROM outbox_refund`); got != test.reason {
				t.Errorf("the reason is %q", got)
			}
			if got := logged.String(); (got != "") != (test.fails != "") || !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), test.fails) {
				t.Errorf("logged: %s", got)
			}
		})
	}
}

// TestWhenAsked: nobody is asked while the request can leave, and then ever less often, until the
// time is over.
func TestWhenAsked(t *testing.T) {
	s := newSystem(t)
	s.unknown()
	s.w.FindOut = func(context.Context, Entry) (Verdict, error) { return "", nil }
	for _, test := range []struct {
		age   time.Duration
		asked int
		next  time.Duration
	}{
		{59 * time.Second, 0, 0}, {61 * time.Second, 1, 61 * time.Second}, {10 * time.Minute, 1, 10 * time.Minute},
		{5 * time.Hour, 1, time.Hour}, {25 * time.Hour, 0, 0},
	} {
		s.sentAgo(test.age)
		if asked := s.askOnce(); asked != test.asked {
			t.Errorf("after %v: asked %d times", test.age, asked)
		}
		if asked := s.askOnce(); asked != 0 {
			t.Errorf("after %v: asked again at once", test.age)
		}
		next := parseTime(s.column(`SELECT next_at FROM outbox_question`))
		if wait := time.Until(next); test.asked > 0 && (wait < test.next-10*time.Second || wait > test.next+10*time.Second) {
			t.Errorf("after %v: asked again in %v", test.age, wait)
		}
	}
}

// TestOneAsks: of several workers, one asks. An answer about an attempt is none about a later one.
func TestOneAsks(t *testing.T) {
	s := newSystem(t)
	due := s.question()
	asked := 0
	s.w.ResubmitNotRecorded = true
	s.w.FindOut = func(context.Context, Entry) (Verdict, error) { asked++; return NotRecorded, nil }
	for range 3 {
		s.w.ask(t.Context(), due)
	}
	if s.check("pending"); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	s.w.recordOnce(t.Context(), s.take(1), outcome{event: eventDoubted})
	if err := s.w.follow(t.Context(), due, Recorded); err != nil {
		t.Fatal(err)
	}
	s.check("unknown")
}

// TestAnswerAtTheEnd: an answer that comes when the worker is to end is followed, because it may not come
// again.
func TestAnswerAtTheEnd(t *testing.T) {
	s := newSystem(t)
	due := s.question()
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.w.follow(ended, due, Recorded); err != nil {
		t.Fatal(err)
	}
	s.check("accepted")
}

// TestAskedAboutTheNextAttempt: the questions about an attempt do not delay the first about the next.
func TestAskedAboutTheNextAttempt(t *testing.T) {
	s := newSystem(t)
	s.unknown()
	s.sentAgo(5 * time.Hour)
	s.w.FindOut = func(context.Context, Entry) (Verdict, error) { return "", nil }
	if asked := s.askOnce(); asked != 1 {
		t.Fatalf("asked %d times", asked)
	}
	s.decide(Unknown, Resubmit)
	s.w.recordOnce(t.Context(), s.take(1), outcome{event: eventDoubted})
	s.set(`UPDATE outbox_refund SET sent_at = $1`, timeText(time.Now().Add(-2*time.Minute)))
	s.askOnce()
	if got := s.column(`SELECT attempt FROM outbox_question`); got != "2" {
		t.Errorf("asked about attempt %s last", got)
	}
	if left, err := s.w.unasked(t.Context()); left || err != nil {
		t.Errorf("still to be asked: %v, %v", left, err)
	}
}

// TestHungQuestion: a function that does not return is given up after its time.
func TestHungQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		w := &worker{Config: Config{FindOut: func(context.Context, Entry) (Verdict, error) { <-end; return Recorded, nil }}}
		began := time.Now()
		v, err := w.answer(t.Context(), Entry{})
		if v != "" || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != askTimeout {
			t.Errorf("%q, %v after %v", v, err, time.Since(began))
		}
		close(end)
	})
}

// TestDrainAsksOnce: a worker that drains asks about each unknown refund, and sends again what is
// not recorded.
func TestDrainAsksOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *system) {
		s.unknown()
		s.sentAgo(time.Hour)
		s.w.ResubmitNotRecorded = true
		s.w.FindOut = func(context.Context, Entry) (Verdict, error) {
			time.Sleep(time.Minute / 3) // longer than the worker needs to see that nothing else is left
			return NotRecorded, nil
		}
		s.drain()
		if s.check("accepted"); s.requests() != 1 {
			t.Errorf("%d requests", s.requests())
		}
	})
}
