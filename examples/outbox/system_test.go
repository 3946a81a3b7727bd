package main

import (
	"os/exec"
	"strings"

	"github.com/riverqueue/river/rivertype"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// enqueue enqueues records, one line of JSON each.
func (s *system) enqueue(records ...string) {
	s.t.Helper()
	s.must(0, "enqueue", "-in", write(s.t, "in.jsonl", strings.Join(records, "\n")))
}

// texts returns the only column of a result.
func (s *system) texts(statement string, args ...any) (all []string) {
	s.t.Helper()
	if err := s.db.Select(s.t.Context(), &all, statement, args...); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// states returns the states of the refunds, in order.
func (s *system) states() string {
	s.t.Helper()
	return strings.Join(s.texts(`SELECT state FROM outbox_refund ORDER BY id`), " ")
}

// decisions returns who decided what, in order.
func (s *system) decisions() string {
	s.t.Helper()
	return strings.Join(s.texts(`SELECT refund || ' ' || who || ': ' || what || ' (' || note || ')' FROM outbox_decision ORDER BY id`), "; ")
}

// start starts a worker.
func (s *system) start(args ...string) (*exec.Cmd, func() program.Result) {
	s.t.Helper()
	cmd := s.command("work", args...)
	return cmd, program.Start(s.t, cmd)
}

func (s *system) requests() int { return s.engine.RequestCount(sandbox.Refunds) }

const one = `{"refund_id":"rf_1","amount":10150,"currency":"USD"}`

// kill kills a worker, which is taken for dead at once, as if it had been for a while.
func (s *system) kill(cmd *exec.Cmd, wait func() program.Result) {
	s.t.Helper()
	cmd.Process.Kill()
	wait()
	s.set(`UPDATE outbox_refund SET sent_at = '2026-01-01T00:00:00.000Z' WHERE state = 'sending'`)
	s.set(`DELETE FROM ` + s.river("leader"))
	s.set(`UPDATE ` + s.river("job") + ` SET attempted_at = '2026-01-01 00:00:00' WHERE state = 'running'`)
}

// jobs counts River's jobs of a state.
func (s *system) jobs(state rivertype.JobState) int {
	s.t.Helper()
	return len(s.texts(`SELECT kind FROM `+s.river("job")+` WHERE state = $1`, string(state)))
}

// river names a table of River's.
func (s *system) river(table string) string {
	if s.at == nil { // PostgreSQL
		return refundoutbox.Schema + ".river_" + table
	}
	return "river_" + table
}

// age makes all requests old enough for a decision.
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

// token returns what is printed with the list of the chosen refunds.
func (s *system) token(f refundoutbox.Filter) string {
	s.t.Helper()
	chosen, err := refundoutbox.List(s.t.Context(), s.db, f)
	if err != nil {
		s.t.Fatal(err)
	}
	return refundoutbox.Token(chosen)
}
