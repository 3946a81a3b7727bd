package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

func TestMerchants(t *testing.T) {
	engine, vars := serve(t)
	delete(vars, "CARDDATA_MERCHANT_ID")
	one, two := newGate(), newGate()
	engine.SetJob("7", sandbox.Job{Content: one, Merchant: "one"})
	engine.SetJob("7", sandbox.Job{Content: two, Merchant: "t/wo"})
	engine.SetJob("7", sandbox.Job{Content: strings.NewReader("of four"), Merchant: "four"})
	dir := t.TempDir()
	done := make(chan program.Result)
	go func() {
		done <- call(t.Context(), vars, "-job", "7", "-merchant", "one", "-merchant", "t/wo", "-merchant", "three", "-merchant", "four",
			"-parallel", "2", "-o", filepath.Join(dir, "result-{merchant}"))
	}()
	<-one.reached
	<-two.reached
	if n := engine.RequestCount(sandbox.Updater); n != 2 {
		t.Errorf("%d requests at the same time", n)
	}
	close(one.open)
	close(two.open)
	got := <-done
	lines := strings.Split(strings.TrimSuffix(got.Stderr, "\n"), "\n")
	if got.Code != 1 || len(lines) != 6 {
		t.Fatalf("%+v", got)
	}
	path := filepath.Join(dir, "result-")
	for i, want := range []string{
		"live 127", "wrote " + path + "one: 64 MiB, ", "wrote " + path + "t%2Fwo: 64 MiB, ", "wrote " + path + "four: 7 B, ",
		path + "three: updater: download: refused (status 404", "check -job; ",
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %s, want %s", i, lines[i], want)
		}
	}
	checkFile(t, path+"one", sandbox.Synthetic(sandbox.CSV, gateSize))
	checkFile(t, path+"t%2Fwo", sandbox.Synthetic(sandbox.CSV, gateSize))
	checkFile(t, path+"four", strings.NewReader("of four"))
	if !isMissing(path + "three") {
		t.Error("a file without content")
	}
}

func TestBusy(t *testing.T) {
	engine, vars := serve(t)
	content := newGate()
	engine.SetJob("42", sandbox.Job{Content: content})
	args := []string{"-job", "42", "-o", filepath.Join(t.TempDir(), "result.csv")}
	done := make(chan program.Result)
	go func() { done <- call(t.Context(), vars, args...) }()
	<-content.reached
	if got := call(t.Context(), vars, args...); got.Code != exitLater || !strings.HasSuffix(got.Stderr, "\nanother download writes to the same file: wait for its end\n") {
		t.Errorf("%+v", got)
	}
	close(content.open)
	if got := <-done; got.Code != 0 {
		t.Errorf("%+v", got)
	}
}

func TestWaiting(t *testing.T) {
	notReady := sandbox.Fault{Status: 404, Body: `{"error":{"code":"not_ready","message":"","details":{}}}`}
	engine, vars := serve(t)
	for _, test := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"code", []string{"-not-ready", "x, not_ready"}, 0, `^live .*\n(the job is not ready \(status 404\), asking again\n){2}$`},
		{"status", []string{"-not-ready", "404"}, 0, `^live .*\n(the job is not ready \(status 404\), asking again\n){2}$`},
		{"file", []string{"-not-ready", "404", "-o", filepath.Join(t.TempDir(), "x")}, 0, `asking again\nwrote .*\n$`},
		{"not listed", []string{"-not-ready", "not,ready,409"}, 1, `^live .*\nupdater: .*\ncheck -job; `},
		{"no list", nil, 1, `^live .*\nupdater: .*\ncheck -job; `},
		{"too long", []string{"-not-ready", "404", "-interval", "1h", "-wait", "1m"}, exitLater, `-wait\n$`},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine.Reset()
			engine.Script(sandbox.Updater, notReady, notReady)
			got := call(t.Context(), vars, append([]string{"-job", "42", "-interval", "1ms"}, test.args...)...)
			if got.Code != test.code || !regexp.MustCompile(test.stderr).MatchString(got.Stderr) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestNightly: a job over many merchants fetches what is new, and nothing twice.
func TestNightly(t *testing.T) {
	engine, vars := serve(t)
	delete(vars, "CARDDATA_MERCHANT_ID")
	const merchants, size = 20, 100_000
	args := []string{"-job", "7", "-o", filepath.Join(t.TempDir(), "result-{merchant}.csv")}
	for i := range merchants {
		merchant := fmt.Sprint("m-", i)
		engine.SetJob("7", sandbox.Job{Content: sandbox.Synthetic(sandbox.CSV, size), Merchant: merchant})
		args = append(args, "-merchant", merchant)
	}
	fetched := 0
	for night, want := range []struct{ bytes, wrote, unchanged int }{
		{merchants * size, merchants, 0}, {0, 0, merchants}, {2 * size, 1, merchants - 1}, {0, 0, merchants},
	} {
		if night == 2 {
			engine.SetJob("7", sandbox.Job{Content: sandbox.Synthetic(sandbox.CSV, 2*size), Merchant: "m-5"})
		}
		got := call(t.Context(), vars, args...)
		sent := 0
		for _, r := range engine.Requests(sandbox.Updater) {
			sent += int(r.Sent)
		}
		if got.Code != 0 || sent-fetched != want.bytes || strings.Count(got.Stderr, "wrote ") != want.wrote || strings.Count(got.Stderr, "unchanged ") != want.unchanged {
			t.Errorf("night %d: %d bytes were sent, %+v", night, sent-fetched, got)
		}
		fetched = sent
	}
}

// TestFormatOfAFile: what is not of the format to be read does not take the place of
// yesterday's result.
func TestFormatOfAFile(t *testing.T) {
	engine, vars := serve(t)
	path := filepath.Join(t.TempDir(), "result.csv")
	engine.SetJob("42", sandbox.Job{Content: sandbox.Synthetic(sandbox.CSV, 1000)})
	if got := call(t.Context(), vars, "-job", "42", "-o", path, "-read", "csv"); got.Code != 0 || got.Stdout == "" {
		t.Fatalf("%+v", got)
	}
	engine.SetJob("42", sandbox.Job{Content: strings.NewReader("Please log in.")})
	got := call(t.Context(), vars, "-job", "42", "-o", path, "-read", "json")
	if got.Code != 1 || !strings.HasSuffix(got.Stderr, "\nthe result is not of the format that -read names\n") {
		t.Errorf("%+v", got)
	}
	checkFile(t, path, sandbox.Synthetic(sandbox.CSV, 1000))
}
