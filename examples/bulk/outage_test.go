package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// refused counts the requests that the last service refused.
var refused atomic.Int64

// serveUntil starts a service that, while it is down, answers only requests with
// one card.
func serveUntil(t *testing.T, card string, status int) (*atomic.Bool, program.Variables) {
	t.Helper()
	engine := sandbox.New()
	engine.SetLookup(sandbox.SyntheticCard)
	var down atomic.Bool
	refused.Store(0)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case !down.Load() || bytes.Contains(body, []byte(card)):
			r.Body = io.NopCloser(bytes.NewReader(body))
			engine.ServeHTTP(w, r)
		case status == 0:
			panic(http.ErrAbortHandler)
		default:
			refused.Add(1)
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(server.Close)
	return &down, program.Variables{"CARDDATA_BIN_URL": server.URL, "CARDDATA_API_KEY": "k"}
}

// TestOutage has the service fail after its first answers. Rows that are bad, and
// those whose answer is known, say nothing of whether it is back.
func TestOutage(t *testing.T) {
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "4%05d\n", i)
	}
	for i := range 1500 {
		fmt.Fprintf(&text, "5%05d\n4%05d\n\x01\n", i, i%50)
	}
	in := write(t, "in.txt", text.String())
	_, vars := serveUntil(t, "", 0)
	reference := filepath.Join(t.TempDir(), "out")
	if got := bulk(t, vars, "-in", in, "-out", reference); got.Code != exitFailedRows {
		t.Fatalf("%+v", got)
	}
	for name, status := range map[string]int{"no response": 0, "server": 503} {
		t.Run(name, func(t *testing.T) {
			down, vars := serveUntil(t, `"400000"`, status)
			down.Store(true)
			out := filepath.Join(t.TempDir(), "out")
			args := []string{"-in", in, "-out", out}
			got := bulk(t, vars, append(args, "-give-up", "1ms")...)
			if got.Code != exitUnanswered || !strings.HasPrefix(got.Stdout, "outage ") ||
				!strings.Contains(got.Stderr, "bulk: the service does not answer: it has failed for 1ms\nto go on, run") {
				t.Errorf("%+v", got)
			}
			if failed := read(t, out+".failed.csv"); strings.Contains(failed, "no_response") || strings.Contains(failed, "server") || strings.Contains(failed, "suspended") {
				t.Errorf("failed:\n%s", failed)
			}
			down.Store(false)
			got = bulk(t, vars, append(args, "-resume")...)
			if got.Code != exitFailedRows || read(t, out) != read(t, reference) || read(t, out+".failed.csv") != read(t, reference+".failed.csv") {
				t.Errorf("%+v", got)
			}
			if !regexp.MustCompile(`(?m)^complete, 1,500 failed +4,550 +rows(.|\n)*^known +3,050$`).MatchString(got.Stdout) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// An outage that ends in time fails no row and asks for no resuming.
func TestOutageThatEnds(t *testing.T) {
	down, vars := serveUntil(t, "none", 503)
	down.Store(true)
	out := filepath.Join(t.TempDir(), "out")
	wait := program.Start(t, program.Command(t, vars, binary, "-in", write(t, "in.txt", "411111\n"), "-out", out))
	program.WaitFor(t, func() bool { return refused.Load() > 0 })
	down.Store(false)
	if got := wait(); got.Code != 0 || !strings.Contains(read(t, out), "411111,") {
		t.Errorf("%+v", got)
	}
}
