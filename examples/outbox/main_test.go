package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// The states, as they stand in the database.
const (
	pending  = "pending"
	sending  = "sending"
	accepted = "accepted"
	rejected = "rejected"
	unknown  = "unknown"
	absent   = "absent"
)

// binary is the program, as its users build it.
var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

// A system is a service, a database and the program between them.
type system struct {
	t      testing.TB
	engine *sandbox.Engine
	db     *refundoutbox.Database
	vars   program.Variables
	at     []string // the flags that name the database
}

// newSystem starts a service of the test's own, and a database in SQLite.
func newSystem(t testing.TB) *system {
	t.Helper()
	file := filepath.Join(t.TempDir(), "outbox.db")
	db, err := refundoutbox.OpenSQLite(t.Context(), file)
	if err == nil {
		err = db.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, db, nil, "-db", file)
}

func serve(t testing.TB, db *refundoutbox.Database, vars program.Variables, at ...string) *system {
	t.Helper()
	t.Cleanup(db.Close)
	engine := sandbox.New()
	engine.Retain(100_000)
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s := &system{t, engine, db, program.Variables{
		"CARDDATA_REFUND_URL": server.URL(), "CARDDATA_ACCOUNT_ID": "acct", "USER": "tester",
	}, at}
	maps.Copy(s.vars, vars)
	return s
}

func (s *system) command(name string, args ...string) *exec.Cmd {
	args = append(append([]string{name}, s.at...), args...)
	cmd := program.Command(s.t, s.vars, binary, args...)
	return cmd
}

// run runs the program to its end.
func (s *system) run(name string, args ...string) program.Result {
	s.t.Helper()
	return program.Run(s.t, s.command(name, args...))
}

// must runs the program, and fails the test if its exit code is another.
func (s *system) must(code exit, name string, args ...string) program.Result {
	s.t.Helper()
	got := s.run(name, args...)
	if got.Code != int(code) {
		s.t.Fatalf("outbox %s: exit code %d, want %d\n%s%s", name, got.Code, code, got.Stdout, got.Stderr)
	}
	return got
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
