package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

const result = `old_number,new_number,new_expiry,result
4111111111111111,4242424242424242,2031-07,number_changed
5555555555554444,,2030-11,expiry_changed
378282246310005,,,unchanged
6011111111111117,,,account_closed
`

func call(t *testing.T, vars program.Variables, args ...string) program.Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, &stdout, &stderr, vars.Lookup)
	return program.Result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}
}

func variables(url string) program.Variables {
	return program.Variables{
		"CARDDATA_UPDATER_URL":  url,
		"CARDDATA_ACCESS_TOKEN": "token-canary",
		"CARDDATA_MERCHANT_ID":  "merchant-canary",
	}
}

func serve(t *testing.T) (*sandbox.Engine, program.Variables) {
	t.Helper()
	engine := sandbox.New()
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return engine, variables(server.URL())
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1]
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func TestBinary(t *testing.T) {
	got := program.Run(t, program.Command(t, nil, program.Build(t)))
	if got.Code != 0 || got.Stdout != result {
		t.Errorf("exit code %d, output:\n%s", got.Code, got.Stdout)
	}
	banner := regexp.MustCompile(`^sandbox http://127\.0\.0\.1:\d+ \(not set: CARDDATA_UPDATER_URL, CARDDATA_ACCESS_TOKEN, CARDDATA_MERCHANT_ID\)\n$`)
	if !banner.MatchString(got.Stderr) {
		t.Errorf("error output:\n%s", got.Stderr)
	}
}

func TestInterrupt(t *testing.T) {
	binary, path := program.Build(t), filepath.Join(t.TempDir(), "result.csv")
	got := program.Interrupt(t, func(url string) *exec.Cmd {
		return program.Command(t, variables(url), binary, "-job", "42", "-o", path)
	})
	if got.Code != 130 || lastLine(got.Stderr) != "interrupted" || !isMissing(path) {
		t.Errorf("%+v; file removed: %t", got, isMissing(path))
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.csv")
	got := call(t, nil, "-o", path)
	content, err := os.ReadFile(path)
	if err != nil || string(content) != result || got.Code != 0 || got.Stdout != "" {
		t.Fatalf("%v; %+v; file:\n%s", err, got, content)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v; mode %v", err, info.Mode())
	}

	engine, live := serve(t)
	got = call(t, live, "-job", "42", "-o", path)
	if got.Code != 2 || !strings.HasPrefix(lastLine(got.Stderr), "download: open ") {
		t.Errorf("existing file: %+v", got)
	}
	if content, _ := os.ReadFile(path); string(content) != result {
		t.Errorf("the existing file was changed:\n%s", content)
	}
	if n := engine.RequestCount(sandbox.Updater); n != 0 {
		t.Errorf("%d requests were sent in vain", n)
	}
}

func TestIncomplete(t *testing.T) {
	engine, live := serve(t)
	cut := sandbox.Fault{Truncate: 50}
	engine.Script(sandbox.Updater, cut, cut)
	path := filepath.Join(t.TempDir(), "result.csv")
	toFile := call(t, live, "-job", "42", "-o", path)
	toPipe := call(t, live, "-job", "42")
	if toFile.Code != 1 || !isMissing(path) {
		t.Errorf("%+v; file removed: %t", toFile, isMissing(path))
	}
	if toPipe.Code != 1 || toPipe.Stdout != result[:50] {
		t.Errorf("%+v", toPipe)
	}
	for _, got := range []program.Result{toFile, toPipe} {
		if !strings.HasPrefix(lastLine(got.Stderr), "updater: ") || strings.Count(got.Stderr, "\n") != 2 {
			t.Errorf("error output:\n%s", got.Stderr)
		}
	}
}

func TestExitCodes(t *testing.T) {
	_, live := serve(t)
	noMerchant := variables(live["CARDDATA_UPDATER_URL"])
	delete(noMerchant, "CARDDATA_MERCHANT_ID")
	for _, test := range []struct {
		vars   program.Variables
		args   []string
		code   int
		stderr string
	}{
		{nil, []string{"-h"}, 0, ""},
		{live, []string{"-job", "42"}, 0, "live 127.0.0.1:"},
		{live, nil, 2, "download: -job is missing"},
		{live, []string{"-job", "4111111111111111"}, 1, "updater: download: refused (status 404"},
		{live, []string{"-job", ".."}, 2, "updater: download: the job id "},
		{nil, []string{"4111111111111111"}, 2, "download: no arguments besides"},
		{nil, []string{"-4111111111111111"}, 2, "download: flag provided but not defined: -411111******1111"},
		{nil, []string{"-o", filepath.Join(t.TempDir(), "missing", "4111111111111111")}, 2, "download: open "},
		{noMerchant, []string{"-job", "42"}, 2, "missing or empty: CARDDATA_MERCHANT_ID ("},
	} {
		got := call(t, test.vars, test.args...)
		if got.Code != test.code || !strings.HasPrefix(lastLine(got.Stderr), test.stderr) || strings.Count(got.Stderr, "\n") > 2 {
			t.Errorf("%q: %+v", test.args, got)
		}
		if got.Code != 0 {
			got.CheckMasked(t, "token-canary", "merchant-canary")
		}
	}
}
