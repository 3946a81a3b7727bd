package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

func TestTwoPathsToOneFile(t *testing.T) {
	engine, vars := serve(t)
	dir := t.TempDir()
	const input = "card\n411111\n"
	if err := os.WriteFile(filepath.Join(dir, "own.csv"), []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "own.csv"), filepath.Join(dir, "hard.csv")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{
		{"-out", "y.csv", "-report", filepath.Join(dir, "own.csv")},
		{"-out", "y.csv", "-report", "hard.csv"},
		{"-out", "y.csv", "-failed", filepath.Join(dir, "y.csv")},
		{"-out", "y.csv", "-failed", "link/y.csv"},
		{"-out", "y.csv", "-failed", "link/../" + filepath.Base(dir) + "/y.csv"},
		{"-out", "y.csv", "-report", "link/y.csv.state"},
		{"-out", "link/own.csv"},
		{"-out", "link/own.csv", "-resume"},
		{"-out", "y.csv", "-report", "link/y.csv.failed.csv"},
		{"-out", "y.csv", "-retry-failed", "link/y.csv.failed.csv"},
	} {
		cmd := program.Command(t, vars, binary, append([]string{"-in", "own.csv"}, args...)...)
		cmd.Dir = dir
		got := program.Run(t, cmd)
		if got.Code != 2 || !strings.Contains(got.Stderr, "bulk: two of the files are the same: ") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 || read(t, filepath.Join(dir, "own.csv")) != input {
		t.Errorf("something was written: %v, %v", entries, err)
	}
	if engine.RequestCount(sandbox.Bins) != 0 {
		t.Error("something was sent")
	}
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes on windows")
	}
	_, vars := serve(t)
	in := write(t, "in.txt", "411111\n")
	for _, suffix := range []string{"", ".state", ".failed.csv"} {
		out := filepath.Join(t.TempDir(), "out")
		if err := os.WriteFile(out+suffix, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		got := bulk(t, vars, "-in", in, "-out", out, "-resume")
		if got.Code != 2 || !strings.Contains(got.Stderr, "bulk: "+out+suffix+" is not yours alone") || read(t, out+suffix) != "" {
			t.Errorf("%q: %+v", suffix, got)
		}
	}
	dir := t.TempDir()
	report := filepath.Join(dir, "report")
	if err := os.WriteFile(report, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := bulk(t, vars, "-in", in, "-out", filepath.Join(dir, "out"), "-report", report)
	info, err := os.Stat(report)
	if err != nil {
		t.Fatal(err)
	}
	if got.Code != 0 || info.Mode().Perm() != 0o600 || !strings.HasPrefix(read(t, report), "{") {
		t.Errorf("%v; %+v", info.Mode(), got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 4 {
		t.Errorf("something is left: %v, %v", entries, err)
	}
	if got := bulk(t, vars, "-report", dir); got.Code != 2 || !strings.Contains(got.Stderr, "is no file that a report could replace") {
		t.Errorf("%+v", got)
	}
	// A link that leads nowhere is not followed.
	out := filepath.Join(t.TempDir(), "out")
	if err := os.Symlink(out+".elsewhere", out); err != nil {
		t.Fatal(err)
	}
	if got := bulk(t, vars, "-in", in, "-out", out, "-resume"); got.Code != 2 || !strings.Contains(got.Stderr, " exists: name another") {
		t.Errorf("%+v", got)
	}
}

func TestTwoProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("another process is not noticed on windows")
	}
	engine, vars := serve(t)
	g := newGate(0)
	engine.SetLookup(g.lookup)
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"-in", write(t, "in.txt", "411111\n"), "-out", out}
	wait := program.Start(t, program.Command(t, vars, binary, args...))
	<-g.reached
	for _, more := range [][]string{nil, {"-resume"}, {"-resume", "-columns", "type"}} {
		got := bulk(t, vars, append(args, more...)...)
		if got.Code != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, "bulk: another process is at work on this output") {
			t.Errorf("%q: %+v", more, got)
		}
	}
	close(g.pass)
	if got := wait(); got.Code != 0 || strings.Count(read(t, out), "\n") != 2 || engine.RequestCount(sandbox.Bins) != 1 {
		t.Errorf("%+v\n%s", got, read(t, out))
	}
}

func TestCompleteRun(t *testing.T) {
	engine, vars := serve(t)
	out := filepath.Join(t.TempDir(), "out")
	in := write(t, "in.txt", "411111\n999999\n")
	args := []string{"-in", in, "-out", out, "-columns", "card_brand"}
	if got := bulk(t, vars, args...); got.Code != 0 || !strings.Contains(strings.Join(strings.Fields(got.Stdout), " "), "known 1 unknown 1 rows whose card") {
		t.Errorf("%+v", got)
	}
	if got := bulk(t, vars, args...); got.Code != 2 || !strings.Contains(got.Stderr, "exists: that run is complete") {
		t.Errorf("%+v", got)
	}
	// Rows that were added to the input are asked for.
	appendTo(t, in, "45717360\n")
	if got := bulk(t, vars, append(args, "-resume")...); got.Code != 0 || strings.Join(sent(t, engine), ",") != "411111,999999,45717360" {
		t.Errorf("%+v", got)
	}
	const output = "card,card_brand\n411111,VISA\n999999,\n45717360,VISA\n"
	if read(t, out) != output {
		t.Errorf("output:\n%s", read(t, out))
	}
	// Rows that were added to the output are not lost.
	appendTo(t, out, "mine\n")
	for range 2 {
		if got := bulk(t, vars, append(args, "-resume")...); got.Code != 2 || !strings.Contains(got.Stderr, "has grown since") || read(t, out) != output+"mine\n" {
			t.Errorf("%+v", got)
		}
	}
}
