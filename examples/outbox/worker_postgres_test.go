//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

func TestPostgres(t *testing.T) {
	s := newPostgres(t)

	// A worker that lives keeps its marker, whoever comes.
	s.enqueue(one)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: 2 * time.Second})
	cmd, wait := s.start()
	waitFor(t, func() bool { return len(s.engine.Refunds()) == 1 })
	s.must(0, "work", "-drain")
	if s.states() != accepted || s.requests() != 1 || s.decisions() != "" {
		t.Errorf("%s, %d requests, decisions %s", s.states(), s.requests(), s.decisions())
	}

	// One that is killed loses it to the next.
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: time.Hour})
	s.enqueue(`{"refund_id":"rf_2"}`)
	waitFor(t, func() bool { return len(s.engine.Refunds()) == 2 })
	cmd.Process.Kill()
	wait()
	s.must(0, "work", "-drain")
	if s.states() != "accepted unknown" || s.requests() != 2 {
		t.Errorf("%s, %d requests", s.states(), s.requests())
	}
	s.must(0, "migrate")

	// One that loses its lock ends, before others take it for dead for long.
	_, wait = s.start()
	waitFor(t, func() bool {
		n, err := s.db.exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = $1`, int64(lockSpace))
		return n == 1 && err == nil
	})
	if got := wait(); got.Code != 1 || !strings.Contains(got.Stderr, "outbox: the database is away: ") {
		t.Errorf("%+v", got)
	}
}

func TestPostgresNotMigrated(t *testing.T) {
	s := newSystem(t)
	s.at, s.vars["DATABASE_URL"] = nil, startPostgres(t)
	for _, command := range []string{"status", "resolve"} {
		if got := s.must(2, command); got.Stderr != "outbox: the tables are missing: run outbox migrate\n" {
			t.Errorf("%+v", got)
		}
	}
	s.vars["DATABASE_URL"] = strings.Replace(s.vars["DATABASE_URL"], "postgres:///", "postgres://u:canary@/", 1) + "/nowhere"
	s.must(1, "status").CheckMasked(t, "canary")
}
