//go:build unix

package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// killedWorker names the database in the environment of a process that books refunds and
// works them until it is killed. A second word is the service's URL.
const killedWorker = "OUTBOX_KILLED_WORKER"

func workUntilKilled() {
	database, url, _ := strings.Cut(os.Getenv(killedWorker), " ")
	err := bookAndWork(context.Background(), database, url)
	fmt.Fprintln(os.Stderr, "the worker ended by itself:", err)
	os.Exit(1)
}

func bookAndWork(ctx context.Context, database, url string) error {
	client, err := refunds.NewClient(url)
	if err != nil {
		return err
	}
	box, db, err := openDatabase(database)
	if err != nil {
		return err
	}
	book := func(id string, commit bool) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		_, err = tx.ExecContext(ctx, `INSERT INTO booking (refund_id) VALUES ($1)`, id)
		if err == nil {
			_, err = box.Enqueue(ctx, tx, Item{AccountID: "acct", Refund: refund(id, 5)})
		}
		if err != nil || !commit {
			return err
		}
		return tx.Commit()
	}
	ended := make(chan error, 2)
	go func() {
		for {
			if err := book(fmt.Sprintf("rf_%016x", rand.Uint64()), rand.IntN(10) > 0); err != nil {
				ended <- err
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	go func() { ended <- box.Run(ctx, Config{Client: client}) }()
	return <-ended
}

// TestKilled: a process that books refunds with rows of its own, and works them, is
// killed at random. Each booked refund is recorded once, or is unknown.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	eachDatabase(t, func(t *testing.T, database string) {
		s := newSystemOn(t, database)
		s.set(`CREATE TABLE booking (refund_id TEXT NOT NULL)`)
		s.engine.ScriptFunc(sandbox.Refunds, func(sandbox.Request) sandbox.Fault {
			switch rand.IntN(20) {
			case 0:
				return sandbox.Fault{Drop: true}
			case 1:
				return sandbox.Fault{Drop: true, Process: true}
			case 2:
				return sandbox.Fault{Status: 422}
			}
			return sandbox.Fault{}
		})
		for range 8 {
			s.kill(database)
		}
		s.engine.ScriptFunc(sandbox.Refunds, nil) // else chance says how long the client pauses
		s.afterDeath()
		s.w.Log = slog.New(slog.DiscardHandler)
		s.drain()
		booked := s.column(`SELECT refund_id FROM booking ORDER BY refund_id`)
		if enqueued := s.column(`SELECT refund_id FROM outbox_refund ORDER BY refund_id`); enqueued != booked {
			t.Error("what is booked and what is enqueued differ")
		}
		s.audit(len(strings.Fields(booked)))
	})
}

// kill starts a process, and kills it while it works.
func (s *system) kill(database string) {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killedWorker+"="+database+" "+s.url)
	cmd.Stderr = s.t.Output()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for before := s.requests(); s.requests() < before+5; time.Sleep(time.Millisecond) {
		select {
		case err := <-ended:
			s.t.Fatal(err)
		default:
		}
	}
	time.Sleep(rand.N(300 * time.Millisecond))
	cmd.Process.Kill()
	<-ended
}

// afterDeath waits until the database has ended what a killed process began, and makes what
// it left as old as it must be to be taken over.
func (s *system) afterDeath() {
	s.t.Helper()
	for s.box.schema != "" && s.column(`SELECT CAST(pid AS TEXT) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`) != "" {
		time.Sleep(10 * time.Millisecond)
	}
	s.set(`UPDATE outbox_refund SET sent_at = '2026-01-01T00:00:00.000Z' WHERE state = 'sending'`)
	s.set(`UPDATE outbox_refund SET enqueued_at = '2026-01-01T00:00:00.000Z', next_at = '' WHERE state = 'pending'`)
	s.set(`UPDATE ` + s.box.river("job") + ` SET attempted_at = '2026-01-01 00:00:00' WHERE state = 'running'`)
	s.set(`DELETE FROM ` + s.box.river("leader"))
}

// audit compares the outbox with the service's record: what was sent is there once, and
// what is not known to be is unknown.
func (s *system) audit(enqueued int) {
	s.t.Helper()
	times := make(map[string]int)
	for _, r := range s.engine.Refunds() {
		times[r.RefundID]++
	}
	entries, err := s.box.List(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	counts := make(map[State]int)
	for _, e := range entries {
		counts[e.State]++
		n := times[e.RefundID]
		delete(times, e.RefundID)
		if n > 1 || e.State == Accepted && n == 0 || e.State != Accepted && e.State != Unknown && n > 0 {
			s.t.Errorf("row %d is %s, and recorded %d times", e.Row, e.State, n)
		}
	}
	if len(entries) != enqueued || len(times) > 0 || counts[Pending]+counts[Sending] > 0 {
		s.t.Errorf("%d of %d refunds are there, and %d that nobody enqueued; %v", len(entries), enqueued, len(times), counts)
	}
	s.t.Log(counts)
}
