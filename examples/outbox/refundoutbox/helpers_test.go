package refundoutbox

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// A system is a service, a database, and a worker between them.
type system struct {
	t      *testing.T
	engine *sandbox.Engine
	db     *Database
	w      *worker
}

// migrated is an empty database: migrating one takes longer than most tests.
var migrated = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "outbox-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "outbox.db")
	db, err := OpenSQLite(context.Background(), file)
	if err != nil {
		return nil, err
	}
	err = db.Migrate(context.Background())
	db.Close() // all is in one file then
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

func newSystem(t *testing.T) *system {
	t.Helper()
	empty, err := migrated()
	if err != nil && strings.Contains(err.Error(), "built without SQLite") {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "outbox.db")
	if err := os.WriteFile(file, empty, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := OpenSQLite(t.Context(), file)
	if err == nil {
		err = db.Check(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	engine := sandbox.New()
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client, err := refunds.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	w := &worker{Config: Config{Client: client, Log: log}, name: "w", db: db, limiter: rate.NewLimiter(rate.Inf, 1), pause: pause{log: log}, stopping: t.Context()}
	return &system{t, engine, db, w}
}

// enqueue enqueues refunds of the account "acct", and returns their rows.
func (s *system) enqueue(records ...*refunds.Refund) {
	s.t.Helper()
	err := s.db.Transact(s.t.Context(), func(tx Tx) error {
		_, err := Enqueue(s.t.Context(), tx, "acct", records, true)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func refund(id string, amount int64) *refunds.Refund {
	return &refunds.Refund{RefundID: id, Amount: &amount, Currency: "EUR"}
}

// attempt sends a refund as a worker does, with what the service does to it.
func (s *system) attempt(row int64, f sandbox.Fault) {
	s.t.Helper()
	s.engine.Script(sandbox.Refunds, f)
	c, err := take(s.t.Context(), s.db, row, "w")
	if err != nil || c == nil {
		s.t.Fatalf("row %d cannot be taken: %v", row, err)
	}
	s.w.record(s.t.Context(), c, s.w.send(s.t.Context(), c))
}

// decide records a decision about all refunds of a state.
func (s *system) decide(from State, what Event) {
	s.t.Helper()
	s.age()
	chosen, err := List(s.t.Context(), s.db, Filter{State: from})
	if err == nil {
		_, err = Decide(s.t.Context(), s.db, chosen, Decision{Who: "ann", What: what})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// age makes all requests old.
func (s *system) age() {
	s.t.Helper()
	s.set(`UPDATE outbox_refund SET sent_at = '2026-01-01T00:00:00.000Z', first_sent_at = '2026-01-01T00:00:00.000Z' WHERE sent_at <> ''`)
}

func (s *system) set(statement string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(s.t.Context(), statement, args...); err != nil {
		s.t.Fatal(err)
	}
}

// states returns the states of the refunds, in order.
func (s *system) states() string {
	s.t.Helper()
	return s.column(`SELECT state FROM outbox_refund ORDER BY id`)
}

// log returns what was decided, in order.
func (s *system) log() string {
	s.t.Helper()
	return s.column(`SELECT what FROM outbox_decision ORDER BY id`)
}

func (s *system) column(statement string) string {
	s.t.Helper()
	found, err := all[string](s.t.Context(), s.db, statement)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(slices.Clip(found), " ")
}

// check fails the test if the states are others.
func (s *system) check(want string) {
	s.t.Helper()
	if got := s.states(); got != want {
		s.t.Errorf("the states are %s, want %s", got, want)
	}
}
