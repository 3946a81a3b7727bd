package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// serveUntil starts a service that, while it is down, answers only requests with
// one card.
func serveUntil(t *testing.T, card string, status int) (*atomic.Bool, program.Variables) {
	t.Helper()
	engine := sandbox.New()
	engine.SetLookup(sandbox.SyntheticCard)
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case !down.Load() || bytes.Contains(body, []byte(card)):
			r.Body = io.NopCloser(bytes.NewReader(body))
			engine.ServeHTTP(w, r)
		case status == 0:
			panic(http.ErrAbortHandler)
		default:
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
	for name, status := range map[string]int{"no_answer": 0, "server": 503} {
		t.Run(name, func(t *testing.T) {
			down, vars := serveUntil(t, `"400000"`, status)
			down.Store(true)
			out := filepath.Join(t.TempDir(), "out")
			args := []string{"-in", in, "-out", out}
			got := bulk(t, vars, args...)
			if got.Code != exitUnanswered || !regexp.MustCompile(`^outage +50 +rows`).MatchString(got.Stdout) ||
				!strings.Contains(got.Stderr, "bulk: the service does not answer: 1,000 rows in a row have failed ("+name+")\nto go on, run") {
				t.Errorf("%+v", got)
			}
			if failed := read(t, out+".failed.csv"); failed != failedHead || strings.Count(read(t, out), "\n") != 51 {
				t.Errorf("%d rows; failed:\n%s", strings.Count(read(t, out), "\n"), failed)
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

func TestMaxUnanswered(t *testing.T) {
	in := write(t, "in.txt", "411111\n45717360\n510510\n")
	for _, test := range []struct {
		max   string
		code  int
		lines int
	}{
		{"3", exitUnanswered, 0}, {"4", exitFailedRows, 3}, {"0", exitFailedRows, 3},
	} {
		down, vars := serveUntil(t, "none", 0)
		down.Store(true)
		out := filepath.Join(t.TempDir(), "out")
		got := bulk(t, vars, "-in", in, "-out", out, "-max-unanswered", test.max)
		if lines := strings.Count(read(t, out+".failed.csv"), "\n"); got.Code != test.code || lines != 1+test.lines {
			t.Errorf("%s: %d lines; %+v", test.max, lines, got)
		}
		if test.lines > 0 && !strings.HasPrefix(got.Stdout, "complete, 3 failed ") {
			t.Errorf("%+v", got)
		}
	}
}

func TestFailuresOfAnOutage(t *testing.T) {
	for err, unanswered := range map[error]bool{
		bins.ErrNoAnswer: true, bins.ErrServer: true, bins.ErrRateLimited: true, bins.ErrTimeout: true, bins.ErrLocalLimit: true,
		bins.ErrBadResponse: true, bins.ErrMissing: false, bins.ErrBadRequest: false, bins.ErrTooLarge: false, io.EOF: false,
	} {
		f := failureOf(fmt.Errorf("x: %w", err))
		if f.unanswered != unanswered || f.text != "x: "+err.Error() || (f.kind == "request") != (err == io.EOF) {
			t.Errorf("%v: %+v", err, f)
		}
	}
}

// TestCheckpointInAnOutage is of a kill before the service has answered again.
func TestCheckpointInAnOutage(t *testing.T) {
	c := &config{out: filepath.Join(t.TempDir(), "out"), maxUnanswered: 100}
	c.failed = c.out + ".failed.csv"
	open := func() *output {
		o, err := openOutput(c, settingsLine{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := open()
	in, _, err := openInput(strings.NewReader("1\n2\n3\n4\n5\n"), 10, &linesFormat{})
	if err != nil {
		t.Fatal(err)
	}
	for i, test := range []struct {
		err          error
		reused       bool
		rows, failed int64
	}{
		{bins.ErrMissing, false, 1, 1}, {bins.ErrNoAnswer, false, 1, 1}, {nil, true, 1, 1}, {nil, false, 4, 2},
		{bins.ErrNoAnswer, false, 5, 3}, // with any number allowed
	} {
		if i == 4 {
			o.maxUnanswered = 0
		}
		r, err := in.next()
		if err != nil {
			t.Fatal(err)
		}
		if test.err != nil {
			err = o.fail(in, r, failureOf(test.err), test.reused)
		} else {
			err = o.succeed(in, r, r.text, &bins.BulkResult{Reused: test.reused}, nil)
		}
		if err := errors.Join(err, o.save()); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(read(t, c.statePath())), "\n")
		var last stateLine
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
			t.Fatal(err)
		}
		if p := last.Checkpoint; p.Totals.Rows != test.rows || p.Totals.Failed != test.failed || p.Input != 2*test.rows {
			t.Errorf("after row %d: %+v", i+1, p)
		}
	}
	// A run that was complete is so no more once it goes on.
	c.resume = true
	for _, complete := range []bool{true, false} {
		err := o.save()
		if complete {
			err = o.end(true)
		}
		o.close()
		if o = open(); err != nil || o.state.complete() != complete {
			t.Errorf("complete is %v, want %v; %v", !complete, complete, err)
		}
	}
	o.close()
}
