package outbox

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// A system is a service, a database, and a worker between them.
type system struct {
	t    testing.TB
	fake *sandbox.Fake // of the service
	box  *Outbox
	file string // of newSystem
	w    *worker
}

// openFile opens an SQLite file as the documentation says.
func openFile(file string) (*Outbox, *sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+
		"?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return nil, nil, err
	}
	box, err := OpenSQLite(db)
	return box, db, err
}

// migrated is an empty database: migrating one takes longer than most tests.
var migrated = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "outbox-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "outbox.db")
	box, db, err := openFile(file)
	if err != nil {
		return nil, err
	}
	err = box.Migrate(context.Background())
	db.Close() // all is in one file then
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// newFile returns the path of a new outbox.
func newFile(t *testing.T) string {
	t.Helper()
	empty, err := migrated()
	file := filepath.Join(t.TempDir(), "outbox.db")
	if err == nil {
		err = os.WriteFile(file, empty, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// newSystem is a system in an SQLite file and in memory.
func newSystem(t *testing.T) *system {
	t.Helper()
	file := newFile(t)
	box, db, err := openFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := serve(t, box)
	s.file = file
	return s
}

// inBubble runs a test in fake time.
func inBubble(t *testing.T, f func(t *testing.T, s *system)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newSystem(t)) })
}

// serve starts a service for an outbox.
func serve(t testing.TB, box *Outbox) *system {
	t.Helper()
	fake := sandbox.NewFake(t, sandbox.Refunds)
	fake.Retain(100_000)
	s := &system{t: t, fake: fake, box: box}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s.w = &worker{Config: Config{Client: s.client(), Log: log}, Outbox: box, stopping: t.Context()}
	return s
}

// client reaches the service in memory.
func (s *system) client(options ...refunds.Option) *refunds.Client {
	s.t.Helper()
	client, err := refunds.NewClient(sandbox.BaseURL, append(options, refunds.WithHTTPClient(s.fake.HTTPClient()))...)
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// enqueue enqueues refunds of the account "acct", whether they change earlier ones or not.
func (s *system) enqueue(records ...*refunds.Refund) {
	s.t.Helper()
	for _, r := range records {
		if _, err := s.place(Item{"acct", r, true}); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *system) place(item Item) (e Enqueued, err error) {
	err = s.box.transact(s.t.Context(), func(tx session) (err error) {
		e, err = s.box.enqueue(s.t.Context(), tx, item)
		return err
	})
	return e, err
}

func refund(id string, amount int64) *refunds.Refund {
	return &refunds.Refund{RefundID: id, Amount: &amount, Currency: "EUR"}
}

// attempt sends a refund as a worker does, with what the service does to it, unless the
// client is in a pause.
func (s *system) attempt(row int64, f sandbox.Fault) {
	s.t.Helper()
	s.fake.Script(f)
	c, result, err := s.w.send(s.t.Context(), row, time.Now())
	if result.suspended && c == nil {
		return
	}
	if err != nil || c == nil {
		s.t.Fatalf("row %d cannot be taken: %+v, %v", row, result, err)
	}
	s.w.record(s.t.Context(), c, result)
}

// drain works until nothing is left that can be sent.
func (s *system) drain() {
	s.t.Helper()
	s.w.Drain = true
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute) // or a lost refund would hang until the time limit of all tests
	defer cancel()
	if err := errors.Join(s.box.Run(ctx, s.w.Config), ctx.Err()); err != nil {
		s.t.Fatalf("the states are %s: %v", s.column(`SELECT state || ' ' || CAST(COUNT(*) AS TEXT) FROM outbox_refund GROUP BY state`), err)
	}
}

// take marks a refund for a worker that goes no further.
func (s *system) take(row int64) *claim {
	s.t.Helper()
	c, err := take(s.t.Context(), s.box, row)
	if err != nil || c == nil {
		s.t.Fatalf("row %d cannot be taken: %v", row, err)
	}
	return c
}

// decide records a decision about all refunds of a state.
func (s *system) decide(from State, what Verdict) {
	s.t.Helper()
	s.age()
	chosen, err := s.box.List(s.t.Context(), from)
	if err == nil {
		_, err = s.box.Decide(s.t.Context(), chosen, what, "ann", "")
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// age makes all refunds and their requests old.
func (s *system) age() {
	s.t.Helper()
	s.set(`UPDATE outbox_refund SET enqueued_at = $1, sent_at = CASE sent_at WHEN '' THEN '' ELSE $1 END`, timeText(time.Now().Add(-time.Hour)))
}

func (s *system) set(statement string, args ...any) {
	s.t.Helper()
	if _, err := s.box.exec(s.t.Context(), statement, args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) column(statement string, args ...any) string {
	s.t.Helper()
	found, err := all[string](s.t.Context(), s.box, statement, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(found, " ")
}

// check fails the test if the states of the refunds, in order, are others.
func (s *system) check(want string) {
	s.t.Helper()
	if got := s.column(`SELECT state FROM outbox_refund ORDER BY id`); got != want {
		s.t.Errorf("the states are %s, want %s", got, want)
	}
}

// checkLog fails the test if something else was decided.
func (s *system) checkLog(want string) {
	s.t.Helper()
	if got := s.column(`SELECT what FROM outbox_decision ORDER BY id`); got != want {
		s.t.Errorf("the log says %s, want %s", got, want)
	}
}

// requests counts the requests that arrived.
func (s *system) requests() int { return s.fake.RequestCount(sandbox.Refunds) }
