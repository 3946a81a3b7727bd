package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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

// binary is the program, as its users build it.
var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

func call(ctx context.Context, vars program.Variables, args ...string) program.Result {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, &stdout, &stderr, vars.Lookup)
	return program.Result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}
}

func variables(url string) program.Variables {
	return program.Variables{
		"CARDDATA_UPDATER_URL":  url,
		"CARDDATA_ACCESS_TOKEN": "token-canary",
		"CARDDATA_MERCHANT_ID":  "merchant-canary",
	}
}

// serve starts a service of the test's own.
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

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func hash(t *testing.T, content io.Reader) string {
	t.Helper()
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// checkFile fails the test unless path has the content, privately, and nothing
// is left beside it.
func checkFile(t *testing.T, path string, content io.Reader) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if hash(t, file) != hash(t, content) {
		t.Errorf("%s has another content", path)
	}
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s has the mode %v (%v)", path, info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.part*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func TestBinary(t *testing.T) {
	got := program.Run(t, program.Command(t, nil, binary))
	if got.Code != 0 || got.Stdout != result {
		t.Errorf("exit code %d, output:\n%s", got.Code, got.Stdout)
	}
	banner := regexp.MustCompile(`^sandbox http://127\.0\.0\.1:\d+ \(not set: CARDDATA_UPDATER_URL, CARDDATA_ACCESS_TOKEN, CARDDATA_MERCHANT_ID\)\n$`)
	if !banner.MatchString(got.Stderr) {
		t.Errorf("error output:\n%s", got.Stderr)
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.csv")
	engine, vars := serve(t)
	for _, verb := range []string{"wrote", "unchanged"} {
		got := call(t.Context(), vars, "-job", "42", "-o", path)
		if got.Code != 0 || got.Stdout != "" ||
			!strings.HasSuffix(got.Stderr, "\n"+verb+" "+path+": 200 B, text/csv; charset=utf-8, SHA-256 "+hash(t, strings.NewReader(result))+"\n") {
			t.Errorf("%+v", got)
		}
		got.CheckMasked(t, "token-canary", "merchant-canary")
		checkFile(t, path, strings.NewReader(result))
	}
	if got := call(t.Context(), vars, "-job", "42", "-o", path, "-no-hash"); got.Code != 0 || strings.Contains(got.Stderr, "SHA") {
		t.Errorf("%+v", got)
	}
	if n := engine.RequestCount(sandbox.Updater); n != 3 {
		t.Errorf("%d requests", n)
	}
}

func TestFlaky(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "result.csv")
	got := program.Run(t, program.Command(t, nil, binary, "-size", "64MiB", "-flaky", "-o", path))
	content := sandbox.Synthetic(sandbox.CSV, 64<<20)
	if got.Code != 0 || !regexp.MustCompile(`: 64 MiB, text/csv; charset=utf-8, \d\d requests, SHA-256 `).MatchString(got.Stderr) {
		t.Errorf("%+v", got)
	}
	checkFile(t, path, content)
}

func TestUnverified(t *testing.T) {
	engine, vars := serve(t)
	for range 4 {
		engine.Script(sandbox.Updater, sandbox.Fault{Unframed: true})
	}
	path := filepath.Join(t.TempDir(), "result.csv")
	for _, test := range []struct {
		args   []string
		code   int
		stdout string
	}{
		{[]string{"-job", "42"}, 1, ""},
		{[]string{"-job", "42", "-accept-unverified"}, 0, result},
		{[]string{"-job", "42", "-o", path}, 1, ""},
		{[]string{"-job", "42", "-o", path, "-accept-unverified"}, 0, ""},
	} {
		got := call(t.Context(), vars, test.args...)
		if got.Code != test.code || got.Stdout != test.stdout || (got.Code != 0) != strings.HasSuffix(got.Stderr, "-accept-unverified takes it nevertheless\n") {
			t.Errorf("%v: %+v", test.args, got)
		}
	}
	checkFile(t, path, strings.NewReader(result))
}
