//go:build unix

package outbox

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

var truths = flag.Int("refunds", 300, "that TestEveryRefundFindsItsEnd sends at least")

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

// TestEveryRefundFindsItsEnd: at a service with 15 % faults, three processes that book refunds with rows
// of their own, work them and ask its journal are killed at random, and the database with them. At the
// end each booked refund is there, and none is unknown, doubled, or settled wrongly.
func TestEveryRefundFindsItsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	eachDatabase(t, func(t *testing.T, database string) {
		s := newSystemOn(t, database)
		s.set(`CREATE TABLE booking (refund_id TEXT NOT NULL)`)
		s.fake.ScriptFunc(func(sandbox.Request) sandbox.Fault {
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
		records := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			says := NotRecorded
			if s.recorded()[r.URL.Query().Get("refund_id")] > 0 {
				says = Recorded
			}
			io.WriteString(w, string(says))
		}))
		defer records.Close()
		const kills = 6
		for range kills {
			s.workAndKill(database, records.URL, *truths/kills)
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
		s.fake.ScriptFunc(nil) // else chance says how long it takes
		s.w.Log, s.w.Concurrency = slog.New(slog.DiscardHandler), 64
		s.w.FindOut, s.w.ResubmitNotRecorded = journal(records.URL).findOut, true
		go func() { // time passes
			for t.Context().Err() == nil {
				s.laterOn()
				time.Sleep(200 * time.Millisecond)
			}
		}()
		for s.column(`SELECT CAST(id AS TEXT) FROM outbox_refund WHERE state IN ('unknown', 'pending', 'sending') LIMIT 1`) != "" {
			s.drain()
		}
		booked := s.column(`SELECT refund_id FROM booking ORDER BY refund_id`)
		if enqueued := s.column(`SELECT refund_id FROM outbox_refund ORDER BY refund_id`); enqueued != booked {
			t.Error("what is booked and what is enqueued differ")
		}
		if left := s.audit(len(strings.Fields(booked)))[Unknown]; left > 0 {
			t.Errorf("%d are unknown", left)
		}
		t.Log("decided:", s.column(`SELECT what || ' ' || CAST(COUNT(*) AS TEXT) FROM outbox_decision GROUP BY what ORDER BY what`))
	})
}

func (s *system) exec(statement string) error {
	_, err := s.box.exec(s.t.Context(), statement)
	return err
}

// laterOn makes unknown refunds, their requests, and the last questions about them old: no request is
// under way any more.
func (s *system) laterOn() {
	for _, statement := range []string{
		`UPDATE outbox_refund SET enqueued_at = '2026-01-01T00:00:00.000Z', sent_at = '` + timeText(time.Now().Add(-2*time.Minute)) + `' WHERE state = 'unknown'`,
		`DELETE FROM outbox_question`,
	} {
		if err := s.exec(statement); err != nil && s.t.Context().Err() == nil {
			s.t.Error(err)
		}
	}
}
