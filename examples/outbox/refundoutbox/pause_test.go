package refundoutbox

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

var failed = outcome{event: eventDoubted, trouble: "server_error", response: response{reason: "503 Service Unavailable"}}

func newPause() (*pause, *bytes.Buffer) {
	said := new(bytes.Buffer)
	return &pause{log: slog.New(slog.NewTextHandler(said, nil))}, said
}

// wait waits until a refund may be sent.
func (p *pause) wait() {
	for d := p.enter(time.Now()); d > 0; d = p.enter(time.Now()) {
		time.Sleep(d)
	}
}

// TestPause: during an outage of an hour, few refunds are sent, and once one gets
// through, all are.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, said := newPause()
		began, through := time.Now(), 0
		for time.Since(began) < time.Hour {
			p.wait()
			through++
			p.leave(&failed)
		}
		if through < 60 || through > 75 {
			t.Errorf("%d refunds were sent", through)
		}
		p.wait()
		p.leave(&outcome{event: eventAccepted})
		at := time.Now()
		for range 100 {
			p.wait()
		}
		if waited := time.Since(at); waited != 0 {
			t.Errorf("waited for %v after a success", waited)
		}
		if strings.Count(said.String(), "\n") != 2 || !strings.Contains(said.String(), "condition=server_error") || !strings.Contains(said.String(), "going on") {
			t.Error(said)
		}
	})
}

// TestPauseTries: after a pause one refund is sent, and the others wait for what
// becomes of it. One that is not sent after all gives its turn back.
func TestPauseTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPause()
		for range pauseAfter {
			p.leave(&failed)
		}
		time.Sleep(pauseFirst)
		for range 2 {
			if p.enter(time.Now()) > 0 || p.enter(time.Now()) == 0 {
				t.Error("not exactly one may be sent")
			}
			p.leave(nil)
		}
	})
}

// TestPauseObeys: the service's word on when to come again holds for all, also when
// it comes from a single refund.
func TestPauseObeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newPause()
		p.leave(&outcome{event: eventUnsent, trouble: "rate_limited", wait: 7 * time.Second})
		began := time.Now()
		p.wait()
		if waited := time.Since(began); waited != 7*time.Second {
			t.Errorf("waited for %v", waited)
		}
	})
}

// TestRefusalsDoNotPause: a record that is refused says nothing about the service.
func TestRefusalsDoNotPause(t *testing.T) {
	p, _ := newPause()
	for range 3 * pauseAfter {
		p.leave(&outcome{event: eventRefused})
		if p.enter(time.Now()) > 0 {
			t.Fatal("paused")
		}
	}
}

// TestPausedQueue: whoever looks at the queue sees the pause, which ends by itself
// also when the worker that began it is gone. A person's pause does not.
func TestPausedQueue(t *testing.T) {
	s := newSystem(t)
	workers := river.NewWorkers()
	river.AddWorker(workers, s.w)
	q, err := s.db.newQueue(&river.Config{Queues: map[string]river.QueueConfig{Queue: {MaxWorkers: 1}}, Workers: workers, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer q.Stop(context.Background())
	queues := q.(*river.Client[*sql.Tx])
	paused := func() bool {
		t.Helper()
		found, err := queues.QueueGet(t.Context(), Queue)
		if err != nil && !errors.Is(err, rivertype.ErrNotFound) {
			t.Fatal(err)
		}
		return found != nil && found.PausedAt != nil
	}
	for {
		if found, _ := queues.QueueGet(t.Context(), Queue); found != nil {
			break
		}
	}
	s.w.queue = q
	for range pauseAfter {
		s.w.leave(t.Context(), &failed)
	}
	if sum, err := Summarize(t.Context(), s.db); !paused() || err != nil || sum.PausedUntil == "" || sum.PausedFor != failed.reason {
		t.Errorf("paused: %v; %+v, %v", paused(), sum, err)
	}
	next := s.recoverer()
	next.queue = q
	next.resume(t.Context())
	if !paused() {
		t.Error("resumed too early")
	}
	s.set(`UPDATE outbox_pause SET until = '2026-01-01T00:00:00.000Z'`)
	next.resume(t.Context())
	if paused() {
		t.Error("not resumed")
	}
	if err := q.QueuePause(t.Context(), Queue, nil); err != nil {
		t.Fatal(err)
	}
	next.resume(t.Context())
	if !paused() {
		t.Error("a person's pause was ended")
	}
}
