package main

import (
	"os"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
)

func TestUsage(t *testing.T) {
	s := newSystem(t)
	file := s.at[1]
	in := write(t, "in.jsonl", one)
	live := s.vars
	for _, test := range []struct {
		vars program.Variables
		args []string
		want string
	}{
		{live, []string{"4111111111111111"}, "outbox: no such command (-h helps)"},
		{live, []string{"work", "-4111111111111111"}, "outbox work: flag provided but not defined: -411111******1111 (-h helps)"},
		{live, []string{"work", "-db", file, "x"}, "outbox work takes no arguments besides flags"},
		{live, []string{"work", "-db", file, "-concurrency", "0"}, "outbox: -concurrency must be at least 1"},
		{live, []string{"work", "-db", file, "-rate", "NaN"}, "outbox: -concurrency must be at least 1, -rate not negative"},
		{nil, []string{"work", "-db", file}, "outbox: CARDDATA_REFUND_URL is missing (demo has a sandbox)"},
		{program.Variables{"CARDDATA_REFUND_URL": ""}, []string{"work", "-db", file}, "missing or empty: CARDDATA_REFUND_URL"},
		{program.Variables{"CARDDATA_REFUND_URL": "http://refund.example.com"}, []string{"work", "-db", file}, "CARDDATA_REFUND_URL is http to another machine"},
		{live, []string{"work", "-db", file + "x"}, "outbox: there is no database "},
		{live, []string{"status", "-db", file + "x"}, "outbox: there is no database "},
		{live, []string{"resolve", "-db", file + "x"}, "outbox: there is no database "},
		{live, []string{"enqueue", "-db", file}, "outbox: -in is missing"},
		{live, []string{"enqueue", "-db", file, "-in", in + "x"}, "outbox: open "},
		{nil, []string{"enqueue", "-db", file, "-in", in}, "outbox: the account is missing"},

		{program.Variables{"DATABASE_URL": ""}, []string{"status"}, "outbox: DATABASE_URL is empty"},
		{program.Variables{"DATABASE_URL": "postgres://u:canary@h/d"}, []string{"status", "-db", file}, "outbox: both -db and DATABASE_URL"},

		{live, []string{"resolve", "-db", file, "-accepted", "-resubmit"}, "outbox: one decision at a time"},
		{live, []string{"resolve", "-db", file, "-resubmit"}, "outbox: which refunds? "},
		{live, []string{"resolve", "-db", file, "-accepted", "-state", "rejected"}, "outbox: a refund that is rejected cannot be accepted"},
		{live, []string{"resolve", "-db", file, "-accepted"}, "outbox: which refunds? "},
		{live, []string{"resolve", "-db", file, "-accepted", "-reason", "timeout"}, "outbox: which refunds? "},
		{live, []string{"resolve", "-db", file, "-seen"}, "outbox: -seen is about rows"},
		{live, []string{"resolve", "-db", file, "-state", "done"}, "outbox: -state is unknown, absent, rejected or pending"},
		{live, []string{"resolve", "-db", file, "-import", in + "x"}, "outbox: open "},
		{live, []string{"resolve", "-db", file, "-import", in, "-accepted"}, "outbox: with -import, the report decides"},
		{live, []string{"resolve", "-db", file, "-import", in, "-resubmit"}, "outbox: with -import, -resubmit needs -complete-until"},
		{live, []string{"resolve", "-db", file, "-complete-until", "2026-01-01T00:00:00Z"}, "outbox: -complete-until and -complete-from are about a report"},
		{live, []string{"resolve", "-db", file, "-import", in, "-complete-until", "yesterday"}, "outbox resolve: invalid value"},
		{live, []string{"resolve", "-db", file, "-export", "x.txt"}, "outbox: the format of -export"},
		{live, []string{"work", "-db", file, "-lookup", "nowhere"}, "outbox work: invalid value \"nowhere\" for flag -lookup: this is no URL"},
		{live, nil, "outbox: which command?"},
		{live, []string{"enqueue", "-db", file, "-in", in, "-account", ".."}, "outbox: the account cannot be used: "},
		{live, []string{"enqueue", "-db", file, "-in", in, "-account", strings.Repeat("a", 513)}, "outbox: the account cannot be used: "},
		{live, []string{"resolve", "-db", file, "-accepted", "x"}, "outbox: a row is a number"},
		{program.Variables{"USER": ""}, []string{"resolve", "-db", file, "-accepted", "-expect", "0"}, "outbox: who decides?"},
	} {
		got := program.Run(t, program.Command(t, test.vars, binary, test.args...))
		lines := strings.Split(strings.TrimSuffix(got.Stderr, "\n"), "\n")
		if last := lines[len(lines)-1]; got.Code != 2 || got.Stdout != "" || !strings.HasPrefix(last, test.want) {
			t.Errorf("%v: exit code %d, said %s%s; want %s", test.args, got.Code, got.Stdout, got.Stderr, test.want)
		}
		got.CheckMasked(t, "canary")
	}
	if s.requests() != 0 || s.states() != "" {
		t.Error("something was stored or sent")
	}
	for _, args := range [][]string{{"-h"}, {"help"}, {"work", "-h"}, {"enqueue", "-h"}, {"resolve", "-h"}, {"status", "-h"}, {"demo", "-h"}, {"migrate", "-h"}} {
		if got := program.Run(t, program.Command(t, nil, binary, args...)); got.Code != 0 || !strings.HasPrefix(got.Stdout, "usage: outbox") || got.Stderr != "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// TestUnwritableOutput: what cannot be told is no success.
func TestUnwritableOutput(t *testing.T) {
	s := newSystem(t)
	full, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	full.Close()
	write.Close()
	for _, args := range [][]string{{"status"}, {"status", "-json"}, {"resolve", "-log"}} {
		var stderr strings.Builder
		if code := run(t.Context(), append(args, s.at...), write, &stderr, s.vars.Lookup); code != 1 || stderr.Len() == 0 {
			t.Errorf("%v: exit code %d, said %q", args, code, &stderr)
		}
	}
}

// TestDecisions: a decision counts for the attempt that was
// unknown when it was taken, and only once.
func TestDecisions(t *testing.T) {
	s := newSystem(t)
	s.enqueue(`{"refund_id":"a"}`, `{"refund_id":"b"}`)
	if _, err := s.db.Exec(t.Context(), `UPDATE outbox_refund SET state = 'unknown', attempts = 1 WHERE refund_id = 'a'`); err != nil {
		t.Fatal(err)
	}
	if got := s.must(exitAttention, "resolve", "-accepted", "2"); !strings.HasPrefix(got.Stdout, "0 refunds: accepted") {
		t.Errorf("a refund that is not unknown: %+v", got)
	}
	if got := s.must(exitAttention, "resolve", "-accepted", "-reason", "another", "-expect", "1-00000000"); !strings.HasPrefix(got.Stdout, "0 refunds: accepted") {
		t.Errorf("none with the reason: %+v", got)
	}
	s.must(0, "resolve", "-accepted", "-expect", s.token(refundoutbox.Filter{State: refundoutbox.Unknown}), "-note", "note\nof 4111111111111111")
	s.must(0, "resolve", "-resubmit", "1")
	if s.states() != "accepted pending" {
		t.Error(s.states())
	}
	got := s.must(0, "resolve", "-log")
	got.CheckMasked(t)
	if !strings.Contains(got.Stdout, "tester  accepted  1    acct     a          1        note of 411111******1111\n") {
		t.Error(got.Stdout)
	}
}
