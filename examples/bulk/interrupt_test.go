package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent Ctrl-C on windows")
	}
	in, _ := killInput(t)
	out := filepath.Join(t.TempDir(), "out.csv")
	engine, vars := serve(t)
	g := newGate(1000)
	engine.SetLookup(g.lookup)
	args := []string{"-in", in, "-out", out, "-prefix", "8", "-concurrency", "1"}
	cmd := program.Command(t, vars, binary, args...)
	wait := program.Start(t, cmd)
	<-g.reached
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	got := wait()
	if got.Code != 130 || !strings.HasSuffix(got.Stderr, "\ninterrupted\nto go on, run the same command with -resume\n") ||
		!strings.HasPrefix(got.Stdout, "interrupted  ") {
		t.Errorf("%+v", got)
	}
	known, _ := recorded(t, out+".state")
	if len(known) < 900 {
		t.Errorf("%d answers were recorded of 1,000", len(known))
	}
	close(g.pass)
	engine, vars = serve(t)
	engine.SetLookup(sandbox.SyntheticCard)
	if got := bulk(t, vars, append(args, "-resume")...); got.Code != exitFailedRows || !strings.Contains(got.Stdout, "\nruns ") {
		t.Errorf("%+v", got)
	}
	for _, card := range sent(t, engine) {
		if known[card] {
			t.Errorf("%s was asked for again", card)
		}
	}
}

func TestInterruptBeforeAnyAnswer(t *testing.T) {
	in := write(t, "in.txt", "411111\n")
	out := filepath.Join(t.TempDir(), "out.csv")
	got := program.Interrupt(t, func(url string) *exec.Cmd {
		return program.Command(t, program.Variables{"CARDDATA_BIN_URL": url, "CARDDATA_API_KEY": "k"}, binary, "-in", in, "-out", out)
	})
	if got.Code != 130 || !strings.Contains(got.Stderr, "-resume") {
		t.Errorf("%+v", got)
	}
	_, vars := serve(t)
	if got := bulk(t, vars, "-in", in, "-out", out, "-resume"); got.Code != 0 || !strings.Contains(read(t, out), "\n411111,VISA,") {
		t.Errorf("%+v", got)
	}
}

func TestRefusedAndResumed(t *testing.T) {
	engine, vars := serve(t)
	engine.SetLookup(sandbox.SyntheticCard)
	engine.Script(sandbox.Bins, sandbox.Fault{}, sandbox.Fault{}, sandbox.Fault{Status: 403})
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "4%05d\n", i)
	}
	in := write(t, "in.txt", text.String())
	args := []string{"-in", in, "-out", filepath.Join(t.TempDir(), "out.csv"), "-concurrency", "1"}
	got := bulk(t, vars, args...)
	if got.Code != 1 || !regexp.MustCompile(`(?m)^ended early +100 `).MatchString(got.Stdout) || !strings.Contains(got.Stderr, "\nbins: lookup: refused (status 403") {
		t.Errorf("%+v", got)
	}
	engine, vars = serve(t)
	engine.SetLookup(sandbox.SyntheticCard)
	if got := bulk(t, vars, append(args, "-resume")...); got.Code != 0 {
		t.Errorf("%+v", got)
	}
	if n := strings.Count(read(t, args[3]), "\n"); n != 1001 || engine.RequestCount(sandbox.Bins) != 900/bins.MaxCards {
		t.Errorf("%d lines, %d requests", n, engine.RequestCount(sandbox.Bins))
	}
}
