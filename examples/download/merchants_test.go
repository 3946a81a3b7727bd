package main

import (
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
