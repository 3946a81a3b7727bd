package main

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// enqueue enqueues records, one line of JSON each.
func (s *system) enqueue(records ...string) {
	s.t.Helper()
	s.must(0, "enqueue", "-in", write(s.t, "in.jsonl", strings.Join(records, "\n")))
}

// states returns the states of the refunds, in order.
func (s *system) states() string {
	s.t.Helper()
	var states []string
	err := s.db.query(s.t.Context(), func(scan scanner) error {
		var state string
		err := scan(&state)
		states = append(states, state)
		return err
	}, `SELECT state FROM outbox_refund ORDER BY id`)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(states, " ")
}

// decisions returns who decided what, in order.
func (s *system) decisions() string {
	s.t.Helper()
	var all []string
	err := s.db.query(s.t.Context(), func(scan scanner) error {
		var row int64
		var who, what, note string
		err := scan(&row, &who, &what, &note)
		all = append(all, fmt.Sprintf("%d %s: %s (%s)", row, who, what, note))
		return err
	}, `SELECT refund, who, what, note FROM outbox_decision ORDER BY id`)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(all, "; ")
}

// start starts a worker.
func (s *system) start(args ...string) (*exec.Cmd, func() program.Result) {
	s.t.Helper()
	cmd := s.command("work", args...)
	return cmd, program.Start(s.t, cmd)
}

func (s *system) requests() int { return s.engine.RequestCount(sandbox.Refunds) }

const one = `{"refund_id":"rf_1","amount":10150,"currency":"USD"}`

// jobs counts River's jobs of a state.
func (s *system) jobs(state rivertype.JobState) int {
	s.t.Helper()
	q, err := s.db.queue(&river.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := q.JobList(s.t.Context(), river.NewJobListParams().States(state).First(1000))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(list.Jobs)
}

// age makes all markers old enough for a decision.
func (s *system) age() {
	s.t.Helper()
	if _, err := s.db.exec(s.t.Context(), `UPDATE outbox_refund SET sent_at = '2026-01-01T00:00:00.000Z' WHERE state = 'unknown'`); err != nil {
		s.t.Fatal(err)
	}
}

// token returns what is printed with the list of the chosen refunds.
func (s *system) token(f filter) string {
	s.t.Helper()
	chosen, err := choose(s.t.Context(), s.db, &f)
	if err != nil {
		s.t.Fatal(err)
	}
	return token(chosen)
}
