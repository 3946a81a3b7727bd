package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

const pan = "4111111111111111"

func call(t *testing.T, vars program.Variables, stdin io.Reader, args ...string) program.Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, stdin, &stdout, &stderr, vars.Lookup)
	return program.Result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}
}

func serve(t *testing.T) (*sandbox.Engine, program.Variables) {
	t.Helper()
	engine := sandbox.New()
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return engine, program.Variables{"CARDDATA_BIN_URL": server.URL(), "CARDDATA_API_KEY": "key-canary"}
}

func TestBinary(t *testing.T) {
	cmd := program.Command(t, nil, program.Build(t), "45717360", "411111", "999999", pan)
	got := program.Run(t, cmd)
	const want = `CARD      BRAND  TYPE    FUNDING  ISSUER              COUNTRY  PRODUCT  SCA       ERROR
45717360  VISA   DEBIT   DEBIT    Eksempelbanken      DK       Debit    required  -
411111    VISA   CREDIT  CREDIT   First Example Bank  US       Classic  no        -
999999    -      -       -        -                   -        -        -         unknown bin
411111    VISA   CREDIT  CREDIT   First Example Bank  US       Classic  no        -
`
	if got.Code != 0 || got.Stdout != want {
		t.Errorf("exit code %d, output:\n%s", got.Code, got.Stdout)
	}
	banner := regexp.MustCompile(`^sandbox http://127\.0\.0\.1:\d+ \(not set: CARDDATA_BIN_URL, CARDDATA_API_KEY\)\n$`)
	if !banner.MatchString(got.Stderr) {
		t.Errorf("error output:\n%s", got.Stderr)
	}
}

func TestInterrupt(t *testing.T) {
	binary := program.Build(t)
	got := program.Interrupt(t, func(url string) *exec.Cmd {
		return program.Command(t, program.Variables{"CARDDATA_BIN_URL": url, "CARDDATA_API_KEY": "k"}, binary, "411111")
	})
	if got.Code != 130 || got.Stdout != "" || !strings.HasSuffix(got.Stderr, "\ninterrupted\n") {
		t.Errorf("%+v", got)
	}
}

func TestExitCodes(t *testing.T) {
	engine, live := serve(t)
	engine.Script(sandbox.Bins, sandbox.Fault{Status: 403}, sandbox.Fault{Body: `{"cards":null}`})
	urlOnly := program.Variables{"CARDDATA_BIN_URL": live["CARDDATA_BIN_URL"]}
	keyOnly := program.Variables{"CARDDATA_API_KEY": "key-canary"}
	emptyURL := program.Variables{"CARDDATA_BIN_URL": "", "CARDDATA_API_KEY": "key-canary"}
	bothEmpty := program.Variables{"CARDDATA_BIN_URL": "", "CARDDATA_API_KEY": ""}
	swapped := program.Variables{"CARDDATA_BIN_URL": "key-canary", "CARDDATA_API_KEY": "https://x"}
	for _, test := range []struct {
		name   string
		vars   program.Variables
		stdin  io.Reader
		args   []string
		code   int
		stderr string // that the last line begins with
	}{
		{"refused", live, nil, []string{"411111"}, 1, "bins: lookup: refused (status 403"},
		{"null", live, nil, []string{"411111"}, 0, "live 127.0.0.1:"},
		{"live", live, nil, []string{"411111", "999999"}, 0, "live 127.0.0.1:"},
		{"help", nil, nil, []string{"-h"}, 0, ""},
		{"unknown flag", nil, nil, []string{"-" + pan}, 2, "lookup: flag provided but not defined: -411111******1111"},
		{"late flag", nil, nil, []string{"411111", "-json"}, 2, "lookup: flags go before the cards"},
		{"51 cards", nil, nil, strings.Fields(strings.Repeat(pan+" ", 51)), 2, "bins: lookup: 51 cards given"},
		{"51 lines", nil, strings.NewReader(strings.Repeat(pan+"\n", 51)), nil, 2, "bins: lookup: 51 cards given"},
		{"no lines", nil, strings.NewReader("\n \r\n"), nil, 2, "bins: lookup: 0 cards given"},
		{"long input", nil, strings.NewReader(strings.Repeat(pan, 70_000)), nil, 2, "the input is longer"},
		{"broken input", nil, iotest.ErrReader(errors.New("broken " + pan)), nil, 1, "broken 411111******1111"},
		{"no key", urlOnly, nil, []string{"411111"}, 2, "missing or empty: CARDDATA_API_KEY ("},
		{"no url", keyOnly, nil, []string{"411111"}, 2, "missing or empty: CARDDATA_BIN_URL ("},
		{"empty url", emptyURL, nil, []string{"411111"}, 2, "missing or empty: CARDDATA_BIN_URL ("},
		{"both empty", bothEmpty, nil, []string{"411111"}, 2, "missing or empty: CARDDATA_BIN_URL, CARDDATA_API_KEY ("},
		{"swapped", swapped, nil, []string{"411111"}, 2, "bins: new client: the base URL must begin"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := call(t, test.vars, test.stdin, test.args...)
			lines := strings.Split(strings.TrimSuffix(got.Stderr, "\n"), "\n")
			if last := lines[len(lines)-1]; got.Code != test.code || !strings.HasPrefix(last, test.stderr) || len(lines) > 2 {
				t.Errorf("exit code %d, want %d; error output:\n%s", got.Code, test.code, got.Stderr)
			}
			got.CheckMasked(t, "key-canary")
		})
	}
	if pending := engine.Pending(sandbox.Bins); pending != 0 {
		t.Errorf("%d scripted responses were not asked for", pending)
	}
}

func TestTerminal(t *testing.T) {
	// Without a standard input of its own a program gets the null device.
	got := program.Run(t, program.Command(t, nil, program.Build(t)))
	if got.Code != 2 || got.Stdout != "" || !strings.HasPrefix(got.Stderr, "lookup: no cards given") {
		t.Errorf("%+v", got)
	}
}

func TestInput(t *testing.T) {
	fromArgs := call(t, nil, nil, "45717360", "411111")
	fromLines := call(t, nil, strings.NewReader("45717360\r\n\n  411111"))
	if fromArgs.Stdout != fromLines.Stdout || strings.Count(fromLines.Stdout, "\n") != 3 {
		t.Errorf("output:\n%s\nwant:\n%s", fromLines.Stdout, fromArgs.Stdout)
	}
}

func TestRequest(t *testing.T) {
	for _, test := range []struct {
		args []string
		body string
	}{
		{[]string{pan}, `{"cards":[{"card":"4111111111111111"}]}`},
		{[]string{"-enhanced", "411111"}, `{"cards":[{"card":"411111"}],"enhanced":true}`},
	} {
		engine, live := serve(t)
		if got := call(t, live, nil, test.args...); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
		if body := string(engine.Requests(sandbox.Bins)[0].Body); body != test.body {
			t.Errorf("sent %s, want %s", body, test.body)
		}
	}
}

func TestJSON(t *testing.T) {
	got := call(t, nil, nil, "-json", "45717360", "999999")
	var resp bins.LookupResponse
	if err := json.Unmarshal([]byte(got.Stdout), &resp); err != nil || got.Code != 0 {
		t.Fatalf("%v; %+v", err, got)
	}
	if len(resp.Cards) != 2 || resp.Cards[0].Data.Card.Bank.CleanName != "Eksempelbanken" || resp.Cards[1].Error != "unknown bin" {
		t.Errorf("output:\n%s", got.Stdout)
	}
}

func TestMasks(t *testing.T) {
	engine, live := serve(t)
	engine.SetResult("", json.RawMessage(`{"bin":"4111111111111111","error":"no card 4111-1111-1111-1111\u001b[2J\nfound",
		"data":{"card":{"pan_or_token":"4111111111111111","card_brand":"VISA\t4111 1111 1111 1111"}}}`))
	for _, args := range [][]string{
		{pan}, {"-json", pan},
		{"4111 1111 1111 1111"}, {"-json", "4111-1111-1111-1111"},
	} {
		sandboxed := call(t, nil, nil, args...)
		sandboxed.CheckMasked(t)
		engineSays := call(t, live, nil, append(args[:len(args)-1:len(args)-1], "7")...)
		if args[0] == "-json" {
			// Only the identifiers of the card are masked in data.
			engineSays.Stdout = strings.ReplaceAll(engineSays.Stdout, `VISA\t4111 1111 1111 1111`, "")
		}
		engineSays.CheckMasked(t, "key-canary", "\x1b", "\t")
		if sandboxed.Code != 0 || engineSays.Code != 0 {
			t.Errorf("%+v\n%+v", sandboxed, engineSays)
		}
	}
}

func TestFullDisk(t *testing.T) {
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"411111"}, nil, brokenWriter{}, &stderr, program.Variables{}.Lookup)
	if code != 1 || !strings.HasSuffix(stderr.String(), "\ndisk full\n") {
		t.Errorf("exit code %d, error output:\n%s", code, stderr.String())
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }
