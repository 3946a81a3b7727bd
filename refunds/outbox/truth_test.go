//go:build unix

package outbox

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

var truths = flag.Int("refunds", 300, "that find their own end in TestEveryRefundFindsItsEnd")

// askingWorker names the database, the service and the journal in the environment of a process that
// works until it is killed.
const askingWorker = "OUTBOX_ASKING_WORKER"

func askUntilKilled() {
	words := strings.Fields(os.Getenv(askingWorker))
	client, err := refunds.NewClient(words[1])
	if err == nil {
		var box *Outbox
		if box, _, err = openDatabase(words[0]); err == nil {
			err = box.Run(context.Background(), Config{Client: client, FindOut: journal(words[2]).findOut, ResubmitNotRecorded: true})
		}
	}
	fmt.Fprintln(os.Stderr, "the worker ended by itself:", err)
	os.Exit(1)
}

// A journal is the address of what the service has recorded.
type journal string

// findOut says what the journal says, and sometimes takes its time, fails, or says what is no answer.
func (j journal) findOut(ctx context.Context, e Entry) (Verdict, error) {
	switch rand.IntN(12) {
	case 0:
		time.Sleep(rand.N(200 * time.Millisecond))
	case 1:
		return Recorded, errors.New("the ledger does not answer")
	case 2:
		panic("the ledger's client is broken")
	case 3:
		return []Verdict{Resubmit, Closed, "perhaps"}[rand.IntN(3)], nil
	case 4:
		return "", nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, string(j)+"?refund_id="+url.QueryEscape(e.RefundID), nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return Verdict(text), err
}

// TestEveryRefundFindsItsEnd: at a service with 15 % faults, three workers that ask its journal are
// killed at random, and the database with them. At the end no refund is unknown, lost, doubled, or
// settled wrongly.
func TestEveryRefundFindsItsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	eachDatabase(t, func(t *testing.T, database string) {
		s := newSystemOn(t, database)
		s.engine.ScriptFunc(sandbox.Refunds, func(sandbox.Request) sandbox.Fault {
			faults := []sandbox.Fault{
				{Drop: true}, {Drop: true, Process: true}, {Status: 422}, {Status: 429}, {Status: 503}, {Status: 500, Process: true},
				{Status: 502, Process: true}, {Status: 408}, {Status: 499, Process: true}, {Body: new("<html>"), Header: http.Header{"Content-Type": {"text/html"}}},
				{Status: 409}, {Delay: 20 * time.Millisecond},
			}
			if rand.IntN(100) < 15 {
				return faults[rand.IntN(len(faults))]
			}
			return sandbox.Fault{}
		})
		recorded := func() map[string]int {
			times := make(map[string]int)
			for _, r := range s.engine.Refunds() {
				times[r.RefundID]++
			}
			return times
		}
		records := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			says := NotRecorded
			if recorded()[r.URL.Query().Get("refund_id")] > 0 {
				says = Recorded
			}
			io.WriteString(w, string(says))
		}))
		defer records.Close()
		ids := make([]string, *truths)
		for i := range ids {
			ids[i] = fmt.Sprint("rf_", i)
		}
		for chunk := ids; len(chunk) > 0; {
			n := min(100, len(chunk))
			var all []*refunds.Refund
			for _, id := range chunk[:n] {
				all = append(all, refund(id, 5))
			}
			s.enqueue(all...)
			chunk = chunk[n:]
		}
		for range 6 {
			s.workAndKill(database, records.URL, max(10, *truths/10))
			if s.box.schema != "" && rand.IntN(2) == 0 {
				server, err := servers()
				if err == nil {
					err = errors.Join(server.stop(), server.start())
				}
				if err != nil {
					t.Fatal(err)
				}
				for s.exec("SELECT 1") != nil { // the pool notices
				}
			}
			s.afterDeath()
			s.laterOn()
		}
		s.w.Log = slog.New(slog.DiscardHandler)
		s.w.FindOut, s.w.ResubmitNotRecorded = journal(records.URL).findOut, true
		time.AfterFunc(0, func() { // time passes
			for t.Context().Err() == nil {
				s.laterOn()
				time.Sleep(200 * time.Millisecond)
			}
		})
		for s.column(`SELECT CAST(id AS TEXT) FROM outbox_refund WHERE state IN ('unknown', 'pending', 'sending') LIMIT 1`) != "" {
			s.drain()
		}
		times, entries := recorded(), must(s.box.List(t.Context()))(t)
		counts := make(map[State]int)
		for _, e := range entries {
			counts[e.State]++
			if n := times[e.RefundID]; n > 1 || (e.State == Accepted) != (n == 1) || e.State == Unknown {
				t.Errorf("row %d is %s, and recorded %d times", e.Row, e.State, n)
			}
		}
		if len(entries) != *truths {
			t.Errorf("%d refunds of %d", len(entries), *truths)
		}
		t.Log(counts, "decided:", s.column(`SELECT what || ' ' || CAST(COUNT(*) AS TEXT) FROM outbox_decision GROUP BY what ORDER BY what`))
	})
}

func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func (s *system) exec(statement string) error {
	_, err := s.box.exec(s.t.Context(), statement)
	return err
}

// laterOn makes the requests of unknown refunds, and the last questions about them, old: no request
// is under way any more.
func (s *system) laterOn() {
	for _, statement := range []string{
		`UPDATE outbox_refund SET sent_at = '` + timeText(time.Now().Add(-2*time.Minute)) + `' WHERE state = 'unknown'`,
		`DELETE FROM outbox_question`,
	} {
		if err := s.exec(statement); err != nil && s.t.Context().Err() == nil {
			s.t.Error(err)
		}
	}
}

// workAndKill starts three workers, and kills each at a time of its own.
func (s *system) workAndKill(database, records string, requests int) {
	s.t.Helper()
	var workers sync.WaitGroup
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), askingWorker+"="+strings.Join([]string{database, s.url, records}, " "))
		if err := cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		workers.Go(func() {
			for before, began := s.requests(), time.Now(); s.requests() < before+requests && time.Since(began) < 5*time.Second; {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(rand.N(300 * time.Millisecond))
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
	workers.Wait()
	time.Sleep(50 * time.Millisecond) // the requests of the dead have ended
}
