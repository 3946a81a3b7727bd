package main

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
)

func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute: run without -short")
	}
	dir := t.TempDir()
	// The demo has nothing to do with a database that the environment names.
	vars := program.Variables{"DATABASE_URL": "postgres://secret-canary@192.0.2.1/x", "CARDDATA_REFUND_URL": "https://refund.invalid"}
	cmd := program.Command(t, vars, binary, "demo", "-db", "outbox.db")
	cmd.Dir = dir
	got := program.Run(t, cmd)
	got.CheckMasked(t, "canary")
	if got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	for _, line := range []string{
		`enqueued +2000$`, `killed +3 `, `accepted +1[0-9]{3}`, `rejected +[1-9]`, `unknown +[0-9]+ `,
		`ghosts +0 `, `lost +0 `, `doubled +0 `, `wrong +0 `, `report 1 of the sandbox$`, `to become accepted +[1-9]`, `to become absent +[1-9]`,
		`differences +7 `, `report 2 of the sandbox$`, `to be sent again +[1-9]`,
		`look around: .* -db outbox\.db$`,
	} {
		if !regexp.MustCompile(`(?m)^` + line).MatchString(got.Stdout) {
			t.Errorf("no line %s in\n%s", line, got.Stdout)
		}
	}
	if _, second, _ := strings.Cut(got.Stdout, "report 2"); strings.Contains(second, "differences") || strings.Contains(second, "to become absent") {
		t.Errorf("after the second report, the first left something:\n%s", got.Stdout)
	}
	// The README shows the same lines, but for the numbers that differ from run to run.
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	numbers := regexp.MustCompile(` *[0-9][0-9,]* *`) // which are aligned
	shape := func(text string) string { return numbers.ReplaceAllString(text, "# ") }
	_, summary, _ := strings.Cut(got.Stdout, "what became of them\n")
	summary, _, _ = strings.Cut(summary, "\n\n")
	if !strings.Contains(shape(string(readme)), shape(summary)) {
		t.Errorf("the README shows other lines than\n%s", summary)
	}
	if again := program.Run(t, program.Command(t, nil, binary, "demo", "-db", dir+"/outbox.db")); again.Code != 2 || !strings.Contains(again.Stderr, "exists") {
		t.Errorf("again: %+v", again)
	}
}

// TestReadmeCommands runs the commands of the README, each as it is written.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		for line := range strings.Lines(block[1]) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "./outbox ") {
				commands = append(commands, line)
			}
		}
	}
	s := newSystem(t)
	s.at = nil
	dir := t.TempDir()
	if err := errors.Join(
		os.Symlink(binary, dir+"/outbox"),
		os.WriteFile(dir+"/refunds.csv", []byte("refund_id,amount,currency\nrf_1,10150,USD\n"), 0o600),
		os.WriteFile(dir+"/report.csv", []byte("account,refund_id,amount,currency\nacct,rf_1,10150,USD\n"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		cmd := program.Command(t, s.vars, "/bin/sh", "-c", command)
		cmd.Dir = dir
		if got := program.Run(t, cmd); got.Code != 0 {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if n := len(s.engine.Refunds()); n != 1 || len(commands) != 8 {
		t.Errorf("%d commands, %d refunds recorded", len(commands), n)
	}
	// What the README says about data that is no longer needed.
	purge := regexp.MustCompile(`UPDATE outbox_refund .*;`).FindString(string(readme))
	db, err := refundoutbox.OpenSQLite(t.Context(), dir+"/outbox.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	purge = strings.Replace(purge, "2026-01-01", "9999", 1)
	if n, err := db.Exec(t.Context(), purge); n != 1 || err != nil {
		t.Errorf("%s: %d rows, %v", purge, n, err)
	}
	cmd := program.Command(t, s.vars, binary, "enqueue", "-in", "refunds.csv")
	cmd.Dir = dir
	if got := program.Run(t, cmd); !strings.Contains(got.Stdout, "enqueued 0,") {
		t.Errorf("after the purge: %+v", got)
	}
}
