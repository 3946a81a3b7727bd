package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

const record = `{"refund_id":"rf-1","amount":10150,"currency":"USD"}`

func call(t *testing.T, vars program.Variables, stdin string, args ...string) program.Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	var input io.Reader = strings.NewReader(stdin)
	code := run(t.Context(), args, input, &stdout, &stderr, vars.Lookup)
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
	return engine, program.Variables{"CARDDATA_REFUND_URL": server.URL(), "CARDDATA_ACCOUNT_ID": "account-canary"}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1]
}

func TestBinary(t *testing.T) {
	got := program.Run(t, program.Command(t, nil, program.Build(t)))
	if got.Code != 0 || got.Stdout != "accepted: refund demo-1, amount 10150 USD (status 200)\n" {
		t.Errorf("exit code %d, output:\n%s", got.Code, got.Stdout)
	}
	want := regexp.MustCompile(`^sandbox http://127\.0\.0\.1:\d+ \(not set: CARDDATA_REFUND_URL, CARDDATA_ACCOUNT_ID\)
no record given: submitting a demo record\n$`)
	if !want.MatchString(got.Stderr) {
		t.Errorf("error output:\n%s", got.Stderr)
	}
}

func TestInterrupt(t *testing.T) {
	binary := program.Build(t)
	got := program.Interrupt(t, func(url string) *exec.Cmd {
		cmd := program.Command(t, program.Variables{"CARDDATA_REFUND_URL": url, "CARDDATA_ACCOUNT_ID": "a"}, binary)
		cmd.Stdin = strings.NewReader(record)
		return cmd
	})
	if got.Code != 5 || !strings.HasPrefix(got.Stdout, "outcome unknown: refund rf-1, ") || strings.Count(got.Stderr, "\n") != 2 {
		t.Errorf("%+v", got)
	}
}

func TestInterruptWhileReading(t *testing.T) {
	// A pipe that stays open and empty.
	input, feeder, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer feeder.Close()
	defer input.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	code := run(ctx, nil, input, &stdout, &stderr, program.Variables{}.Lookup)
	if code != 130 || lastLine(stderr.String()) != "interrupted" || stdout.Len() > 0 {
		t.Errorf("exit code %d, output:\n%s%s", code, stdout.String(), stderr.String())
	}
}

func TestOutcomes(t *testing.T) {
	for _, test := range []struct {
		fault string
		code  int
		says  string
	}{
		{"", 0, "accepted: refund rf-1, amount 10150 USD (status 200)\n"},
		{"429", 3, "rejected: refund rf-1, amount 10150 USD; nothing was recorded, "},
		{"refuse", 4, "not sent: refund rf-1, amount 10150 USD; nothing was recorded, "},
		{"503", 5, "outcome unknown: refund rf-1, amount 10150 USD; it may have been recorded, "},
		{"drop-before", 5, "outcome unknown: "},
		{"drop-after", 5, "outcome unknown: "},
		{"earthquake", 2, ""},
	} {
		got := call(t, nil, record, "-fault", test.fault)
		if got.Code != test.code || !strings.HasPrefix(got.Stdout, test.says) || (test.says == "") != (got.Stdout == "") {
			t.Errorf("-fault %s: %+v", test.fault, got)
		}
	}
}

func TestLive(t *testing.T) {
	engine, live := serve(t)
	engine.Script(sandbox.Refunds, sandbox.Fault{}, sandbox.Fault{Status: 422})
	withToken := maps.Clone(live)
	withToken["CARDDATA_REFUND_TOKEN"] = "token-canary"
	file := filepath.Join(t.TempDir(), "record.json")
	if err := os.WriteFile(file, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		vars program.Variables
		args []string
		code int
		says string
	}{
		{withToken, []string{file}, 0, "accepted: "},
		{live, nil, 3, "rejected: refund rf-1, amount 10150 USD; the service refused it, "},
	} {
		got := call(t, test.vars, record, test.args...)
		if got.Code != test.code || !strings.HasPrefix(got.Stdout, test.says) || !strings.HasPrefix(got.Stderr, "live 127.0.0.1:") {
			t.Errorf("%+v", got)
		}
		got.CheckMasked(t, "token-canary", "account-canary")
	}
	sent := engine.Requests(sandbox.Refunds)
	if len(sent) != 2 || sent[0].Path != "/v1/account-canary/refunds" ||
		sent[0].Header.Get("Authorization") != "Bearer ***" || sent[1].Header.Get("Authorization") != "" {
		t.Errorf("%+v", sent)
	}
}

func TestUsage(t *testing.T) {
	engine, live := serve(t)
	missing := filepath.Join(t.TempDir(), "missing")
	tokenOnly := program.Variables{"CARDDATA_REFUND_TOKEN": "token-canary"}
	noAccount := program.Variables{"CARDDATA_REFUND_URL": live["CARDDATA_REFUND_URL"]}
	for _, test := range []struct {
		vars   program.Variables
		args   []string
		code   int
		stderr string
	}{
		{nil, []string{"-h"}, 0, ""},
		{nil, []string{"-4111111111111111"}, 2, "refund: flag provided but not defined: -411111******1111"},
		{nil, []string{"a", "b"}, 2, "refund: one file at most"},
		{nil, []string{missing}, 2, "refund: open " + missing + ": "},
		{nil, []string{"4111111111111111"}, 2, "refund: open 411111******1111: "},
		{live, []string{"-fault", "503"}, 2, "refund: -fault is for the sandbox only"},
		{noAccount, nil, 2, "missing or empty: CARDDATA_ACCOUNT_ID ("},
		{tokenOnly, nil, 2, "missing or empty: CARDDATA_REFUND_URL, CARDDATA_ACCOUNT_ID ("},
	} {
		got := call(t, test.vars, record, test.args...)
		if got.Code != test.code || !strings.HasPrefix(lastLine(got.Stderr), test.stderr) {
			t.Errorf("%q: %+v", test.args, got)
		}
		got.CheckMasked(t, "token-canary")
	}
	if n := engine.RequestCount(sandbox.Refunds); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	got := program.Run(t, program.Command(t, live, program.Build(t)))
	if got.Code != 2 || !strings.HasPrefix(lastLine(got.Stderr), "refund: no record given") {
		t.Errorf("without a record: %+v", got)
	}
}

func TestUnusableRecords(t *testing.T) {
	engine, live := serve(t)
	for input, says := range map[string]string{
		``:                                 "refund: the record is empty",
		`[]`:                               "refund: the record must be an object",
		`null`:                             "refunds: submit: the refund has no RefundID",
		`{"amount":1}`:                     "refunds: submit: the refund has no RefundID",
		`{"refund_id":"a"`:                 "refund: the record cannot be read: ",
		`{"refund_id":"a"} {}`:             "refund: more than one record",
		`{"refund_id":"a","amout":1}`:      `refund: the record cannot be read: json: unknown field "amout"`,
		`{"refund_id":"a","amount":10.5}`:  "refund: amount must be an integer",
		`{"refund_id":"a","amount":1e3}`:   "refund: amount must be an integer",
		`{"refund_id":"a","amount":"1"}`:   "refund: amount must be an integer",
		`{"refund_id":"a","amount":1e-99}`: "refund: amount must be an integer",
		`{"refund_id":"a","amount":9223372036854775808}`:                                              "refund: amount must be an integer",
		`{"refund_id":4111111111111111}`:                                                              "refund: refund_id must be a string",
		`{"refund_id":"a","4111111111111111":1}`:                                                      "refund: the record cannot be read: ",
		`{"refund_id":"a","additional_data":{"metadata":[4111111111111111]}}`:                         "refund: additional_data.metadata must be an object",
		`{"refund_id":"a","payment_method_details":{"card":{"attributes":{"bin":4111111111111111}}}}`: "refund: payment_method_details.card.attributes.bin must be a string",
	} {
		got := call(t, live, input)
		if got.Code != 2 || got.Stdout != "" || !strings.HasPrefix(lastLine(got.Stderr), says) || strings.Count(got.Stderr, "\n") != 2 {
			t.Errorf("%s: %+v", input, got)
		}
		got.CheckMasked(t)
	}
	if n := engine.RequestCount(sandbox.Refunds); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestRecordTravelsExactly(t *testing.T) {
	engine, live := serve(t)
	const exact = `{"refund_id":"4111111111111111","amount":9007199254740993,"additional_data":{"metadata":{"big":123456789012345678901234567890,"decimal":1.10,"nested":[{"x":-0.0}]}}}`
	got := call(t, live, exact)
	if got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	got.CheckMasked(t)
	var sent bytes.Buffer
	if err := json.Compact(&sent, engine.Refunds()[0].Body); err != nil || sent.String() != exact {
		t.Errorf("%v; sent %s", err, sent.String())
	}
}
