package main

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
)

func TestDemo(t *testing.T) {
	dir := t.TempDir()
	// The demo has nothing to do with a database that the environment names.
	vars := program.Variables{"DATABASE_URL": "postgres://secret-canary@192.0.2.1/x", "CARDDATA_REFUND_URL": "https://refund.invalid"}
	cmd := program.Command(t, vars, binary, "demo", "-dir", ".")
	cmd.Dir = dir
	got := program.Run(t, cmd)
	got.CheckMasked(t, "canary")
	if got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	for _, line := range []string{
		`enqueued +1,805 +of 2,000; 195 were`, `killed +3 `, `accepted +1,[0-9]{3}`, `rejected +[1-9]`, `unknown +[1-9][0-9]+ +awaiting`,
		`ghosts +0 `, `lost +0 `, `doubled +0 `, `wrong +0 `, ` +422 amount_too_high +[1-9]`, ` +no answer +[1-9]`,
		`look around: .* -db /.*outbox\.db$`,
	} {
		if !regexp.MustCompile(`(?m)^` + line).MatchString(got.Stdout) {
			t.Errorf("no line %s in\n%s", line, got.Stdout)
		}
	}
	// The README shows the same lines, but for the numbers that differ from run to run.
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	numbers := regexp.MustCompile(`[0-9][0-9,]* *`)
	shape := func(text string) string { return numbers.ReplaceAllString(text, "# ") }
	summary, _, _ := strings.Cut(got.Stdout, "\n\n")
	if !strings.Contains(shape(string(readme)), shape(summary)) {
		t.Errorf("the README shows other lines than\n%s", summary)
	}
	if again := program.Run(t, program.Command(t, nil, binary, "demo", "-dir", dir)); again.Code != 2 || !strings.Contains(again.Stderr, "exists") {
		t.Errorf("again: %+v", again)
	}
}

// TestReadmeCommands runs the commands of the README, each as it stands there.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		for line := range strings.Lines(block[1]) {
			if strings.HasPrefix(line, "./outbox ") {
				commands = append(commands, strings.TrimSpace(line))
			}
		}
	}
	s := newSystem(t)
	s.at = nil
	dir := t.TempDir()
	if err := errors.Join(
		os.Symlink(binary, dir+"/outbox"),
		os.WriteFile(dir+"/refunds.csv", []byte("refund_id,amount,currency\nrf_1,10150,USD\n"), 0o600),
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
	if n := len(s.engine.Refunds()); n != 1 || len(commands) != 7 {
		t.Errorf("%d commands, %d refunds recorded", len(commands), n)
	}
	// What the README says about data that is no longer needed.
	purge := regexp.MustCompile(`UPDATE outbox_refund .*;`).FindString(string(readme))
	db, err := openSQLite(t.Context(), dir+"/outbox.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	purge = strings.Replace(purge, "2026-01-01", "9999", 1)
	if n, err := db.exec(t.Context(), purge); n != 1 || err != nil {
		t.Errorf("%s: %d rows, %v", purge, n, err)
	}
	cmd := program.Command(t, s.vars, binary, "enqueue", "-in", "refunds.csv")
	cmd.Dir = dir
	if got := program.Run(t, cmd); !strings.Contains(got.Stdout, "enqueued 0,") {
		t.Errorf("after the purge: %+v", got)
	}
}
