package outbox

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// TestPause: the longest wait that the service or the client asked for holds for all. A job
// waits for its end, but not for ever, and not when its worker ends.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{stopping: t.Context()}
		for _, test := range []struct {
			wait, left time.Duration
			longer     bool
		}{
			{7 * time.Second, 7 * time.Second, true},
			{7500 * time.Millisecond, 7 * time.Second, false},
			{3 * time.Second, 7 * time.Second, false},
			{time.Minute, time.Minute, true},
		} {
			if longer := w.pause.extend(time.Now().Add(test.wait)); longer != test.longer || w.pause.left() != test.left {
				t.Errorf("%+v: %v, %v left", test, longer, w.pause.left())
			}
		}
		for left := 50 * time.Second; left >= 0; left -= 10 * time.Second {
			if got := w.hold(); got != left {
				t.Errorf("%v left, want %v", got, left)
			}
		}
	})
}

// TestPauseIsShared: a pause that the service asked for is one of all workers, and lasts a
// minute at most.
func TestPauseIsShared(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5), refund("b", 5))
	s.engine.Script(sandbox.Refunds, sandbox.Fault{Status: 429, RetryAfter: 10 * time.Minute})
	if err := s.w.Work(t.Context(), &river.Job[submitArgs]{Args: submitArgs{1}}); err == nil {
		t.Error("it is not tried again")
	}
	sum, err := s.box.Status(t.Context())
	if left := time.Until(sum.PausedUntil); err != nil || left < 0 || left > time.Minute || sum.PausedFor != "429 scripted" {
		t.Errorf("%+v, %v", sum, err)
	}
	other := s.recoverer()
	other.look(t.Context())
	if left := other.pause.left(); left <= 0 || left > time.Minute {
		t.Errorf("the other worker pauses for %v", left)
	}
	s.set(`UPDATE outbox_pause SET until = '2026-01-01T00:00:00.000Z'`)
	if sum, err := s.box.Status(t.Context()); err != nil || !sum.PausedUntil.IsZero() {
		t.Errorf("%+v, %v", sum, err)
	}
}
