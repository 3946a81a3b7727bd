package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

func TestUsage(t *testing.T) {
	engine, vars := serve(t)
	in := write(t, "in.csv", "id,card,type\n1,411111,x\n")
	out := filepath.Join(t.TempDir(), "out.csv")
	taken := write(t, "taken.csv", "mine")
	for _, test := range []struct {
		name   string
		vars   program.Variables
		args   []string
		stderr string
	}{
		{"no key", program.Variables{"CARDDATA_BIN_URL": vars["CARDDATA_BIN_URL"]}, nil, "missing or empty: CARDDATA_API_KEY ("},
		{"no url", program.Variables{"CARDDATA_API_KEY": "key-canary"}, []string{"-in", in, "-out", out}, "missing or empty: CARDDATA_BIN_URL ("},
		{"live without input", vars, nil, "bulk: -in is missing"},
		{"no input", nil, []string{"-out", out}, "bulk: -in is missing"},
		{"a demo of an input", nil, []string{"-in", in, "-demo", t.TempDir()}, "bulk: -demo makes up the input"},
		{"a demo on the live service", vars, []string{"-demo", t.TempDir()}, "bulk: -in is missing"},
		{"no output", vars, []string{"-in", in}, "bulk: -out is missing"},
		{"no such input", vars, []string{"-in", in + "x.csv", "-out", out}, "bulk: open "},
		{"no file", vars, []string{"-in", filepath.Dir(in), "-lines", "-out", out}, "bulk: the input cannot be read: it is a directory"},
		{"argument", vars, []string{"-in", in, "-out", out, "4111111111111111"}, "bulk: no arguments besides flags"},
		{"unknown flag", vars, []string{"-4111111111111111"}, "bulk: flag provided but not defined: -411111******1111"},
		{"two formats", vars, []string{"-in", in, "-out", out, "-lines", "-field", "x"}, "bulk: -column, -field and -lines exclude"},
		{"no format", vars, []string{"-in", taken[:len(taken)-4], "-out", out}, "bulk: open "},
		{"no such column", vars, []string{"-in", in, "-out", out, "-column", "pan"}, `bulk: line 1 of the input names no column "pan"`},
		{"column taken", vars, []string{"-in", in, "-out", out}, `bulk: the input has a column "type" already: rename the new one (-columns NAME=type)`},
		{"no such member", vars, []string{"-in", in, "-out", out, "-columns", "brand"}, `bulk: the service's card object has no member "brand"`},
		{"column twice", vars, []string{"-in", in, "-out", out, "-columns", "a=type,a=prepaid"}, `bulk: -columns names the column "a" twice`},
		{"not of a card", vars, []string{"-in", in, "-out", out, "-columns", "correlation_id"}, "bulk: correlation_id belongs to one request"},
		{"concurrency", vars, []string{"-in", in, "-out", out, "-concurrency", "0"}, "bulk: -concurrency must be at least 1"},
		{"rate", vars, []string{"-in", in, "-out", out, "-rate", "NaN"}, "bulk: -concurrency must be at least 1, -rate not"},
		{"unanswered", vars, []string{"-in", in, "-out", out, "-give-up", "-1s"}, "bulk: -concurrency must be at least 1, -rate not"},
		{"prefix of a card number", vars, []string{"-in", in, "-out", out, "-prefix", "12"}, "bulk: -prefix must be from 1 to 11: "},
		{"no failed file", vars, []string{"-in", in, "-out", out, "-columns", "card_brand", "-retry-failed", in + "x"}, "bulk: open "},
		{"a card for a file", vars, []string{"-in", "4111111111111111", "-out", out, "-lines"}, "bulk: open 411111******1111: "},
		{"retry without input", nil, []string{"-retry-failed", in}, "bulk: -in is missing"},
		{"same file", vars, []string{"-in", in, "-out", filepath.Dir(in) + "/./in.csv"}, "bulk: two of the files are the same"},
		{"output exists", vars, []string{"-in", in, "-out", taken, "-columns", "card_brand"}, "bulk: " + taken + " exists: name another file"},
		{"nothing to resume", vars, []string{"-in", in, "-out", taken, "-resume", "-columns", "card_brand"}, "bulk: there is no state to resume " + taken + " from"},
		{"utf-16", vars, []string{"-in", write(t, "x.csv", "\xff\xfec\x00"), "-out", out}, "bulk: the input is UTF-16"},
		{"empty csv", vars, []string{"-in", write(t, "x.csv", ""), "-out", out}, "bulk: the input does not begin with a CSV header"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := bulk(t, test.vars, test.args...)
			lines := strings.Split(strings.TrimSuffix(got.Stderr, "\n"), "\n")
			if last := lines[len(lines)-1]; got.Code != 2 || got.Stdout != "" || !strings.HasPrefix(last, test.stderr) || len(lines) > 2 {
				t.Errorf("exit code %d; error output:\n%s\nwant %s", got.Code, got.Stderr, test.stderr)
			}
			got.CheckMasked(t, "key-canary")
		})
	}
	// An empty state file is what a run leaves that is killed at once.
	if got := bulk(t, vars, "-in", in, "-out", taken, "-resume", "-columns", "card_brand"); got.Code != 2 {
		t.Errorf("the second time: %+v", got)
	}
	appendTo(t, taken+".state", "mine\n")
	if got := bulk(t, vars, "-in", in, "-out", taken, "-resume", "-columns", "card_brand"); got.Code != 2 || read(t, taken+".state") != "mine\n" {
		t.Errorf("another state file: %+v", got)
	}
	if engine.RequestCount(sandbox.Bins) != 0 || read(t, taken) != "mine" {
		t.Error("something was sent or written")
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("an output was created")
	}
	// No sandbox goes on with a run of the live service.
	if got := bulk(t, vars, "-in", write(t, "in.txt", ""), "-out", out); got.Code != 0 {
		t.Errorf("%+v", got)
	}
	if got := bulk(t, nil, "-in", write(t, "in.txt", ""), "-out", out, "-resume"); got.Code != 2 || !strings.Contains(got.Stderr, "sandbox and live service") {
		t.Errorf("%+v", got)
	}
	if got := bulk(t, nil, "-h"); got.Code != 0 || got.Stdout != usage || got.Stderr != "" {
		t.Errorf("%+v", got)
	}
}

func TestFlagsReachTheRequest(t *testing.T) {
	for _, test := range []struct {
		args   []string
		bodies string
	}{
		{nil, `{"cards":[{"card":"4111111111111111"},{"card":"4111111111111122"}]}`},
		{[]string{"-enhanced"}, `{"cards":[{"card":"4111111111111111"},{"card":"4111111111111122"}],"enhanced":true}`},
		{[]string{"-prefix", "8"}, `{"cards":[{"card":"41111111"}]}`},
	} {
		engine, vars := serve(t)
		in := write(t, "in.txt", "4111111111111111\n4111111111111122\n")
		got := bulk(t, vars, append([]string{"-in", in, "-out", filepath.Join(t.TempDir(), "out")}, test.args...)...)
		var bodies bytes.Buffer
		for _, r := range engine.Requests(sandbox.Bins) {
			bodies.Write(r.Body)
		}
		if got.Code != 0 || bodies.String() != test.bodies {
			t.Errorf("%v: sent %s, want %s; %+v", test.args, &bodies, test.bodies, got)
		}
		got.CheckMasked(t, "key-canary")
	}
}
