//go:build unix

package outbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// killedWorker names the database, the service and its journal in the environment of a process that
// books refunds, works them, and asks what became of them, until it is killed.
const killedWorker = "OUTBOX_KILLED_WORKER"

func workUntilKilled() {
	words := strings.Fields(os.Getenv(killedWorker))
	err := bookAndWork(context.Background(), words[0], words[1], journal(words[2]))
	fmt.Fprintln(os.Stderr, "the worker ended by itself:", err)
	os.Exit(1)
}

func bookAndWork(ctx context.Context, database, url string, records journal) error {
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
	go func() {
		ended <- box.Run(ctx, Config{Client: client, FindOut: records.findOut, ResubmitNotRecorded: true})
	}()
	return <-ended
}

// workAndKill starts three processes, and kills each at a time of its own, when they have sent a
// number of requests.
func (s *system) workAndKill(database, records string, requests int) {
	s.t.Helper()
	enough := s.requests() + requests
	var workers sync.WaitGroup
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprint(killedWorker, "=", database, " ", s.fake.URL(), " ", records))
		cmd.Stderr = s.t.Output()
		if err := cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		workers.Go(func() {
			for s.requests() < enough {
				select {
				case err := <-ended:
					s.t.Error(err)
					return
				case <-time.After(time.Millisecond):
				}
			}
			time.Sleep(rand.N(1500 * time.Millisecond)) // it asks after a second
			cmd.Process.Kill()
			<-ended
		})
	}
	workers.Wait()
	time.Sleep(50 * time.Millisecond) // the requests of the dead have ended
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
// what is not known to be is unknown. It returns how many are in which state.
func (s *system) audit(enqueued int) map[State]int {
	s.t.Helper()
	times := s.recorded()
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
	return counts
}

// recorded tells how often the service has each refund.
func (s *system) recorded() map[string]int {
	times := make(map[string]int)
	for _, r := range s.fake.Refunds() {
		times[r.RefundID]++
	}
	return times
}
