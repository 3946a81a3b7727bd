// Package examples_test runs the programs that are there to be read.
package examples_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var programs = []string{"lookup", "refund", "bulk", "loader", "download"}

// binaries is where the programs are.
var binaries string

func TestMain(m *testing.M) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "CARDDATA_") {
			os.Unsetenv(name)
		}
	}
	dir, err := os.MkdirTemp("", "examples-")
	if err != nil {
		panic(err)
	}
	binaries = dir + string(filepath.Separator)
	args := []string{"build", "-buildvcs=false", "-o", binaries}
	for _, program := range programs {
		args = append(args, "./"+program)
	}
	code := 1
	if out, err := exec.Command("go", args...).CombinedOutput(); err == nil {
		code = m.Run()
	} else {
		os.Stderr.Write(out)
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

func command(t *testing.T, program, stdin string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), binaries+program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

const (
	record = `{"refund_id":"rf_1","amount":10150}`
	table  = `invented data of the built-in sandbox, because CARDDATA_BIN_URL and CARDDATA_API_KEY are not set
CARD      BRAND  TYPE    FUNDING  ISSUER              COUNTRY  PRODUCT  SCA       ERROR
45717360  VISA   DEBIT   DEBIT    Eksempelbanken      DK       Debit    required  -
411111    VISA   CREDIT  CREDIT   First Example Bank  US       Classic  no        -
999999    -      -       -        -                   -        -        -         unknown bin
`
	lines = `card,brand,type,issuer,country,error
45717360,VISA,DEBIT,EKSEMPELBANKEN,DK,
411111******1111,VISA,CREDIT,FIRST EXAMPLE BANK,US,
`
)

func TestPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("record.json", []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		program, stdin, args string
		code                 int
		stdout, stderr       string // stderr: a part of it
	}{
		{"lookup", "", "45717360 4111111111111111 999999", 0, table, ""},
		{"refund", record, "-sandbox", 0, "accepted: refund rf_1, amount 10150 (currency unset) (status 200, request id \"\")\n", "invented"},
		{"refund", `{"refund_id":"rf_1","amount":10,50}`, "-sandbox", 4, "", "the record cannot be read (an amount is an integer, "},
		{"refund", record + record, "-sandbox", 4, "", "more than one record"},
		{"refund", `{"amount":1}`, "-sandbox", 4, "", "RefundID"},
		{"bulk", "45717360\n\n 4111111111111111 \n", "-sandbox", 0, lines, "invented"},
		{"download", "", "-sandbox 42 result.csv", 0, "complete: 200 bytes, SHA-256 cf157b5eb99f00e140f4175dd72021ae2eb5848c2e736fbaeb6813f400ac2c0a\n", "invented"},
		{"download", "", "-sandbox 77 other.csv", 1, "", "status 404"},
		{"download", "", "42", 2, "", "usage: "},
		// Nothing is invented unasked.
		{"lookup", "411111\n", "", 2, "", "usage: "},
		{"refund", "", "record.json", 2, "", "check CARDDATA_REFUND_URL: "},
		{"bulk", "411111\n", "", 2, "", "check CARDDATA_BIN_URL "},
		{"loader", "", "", 1, "", "check CARDDATA_BIN_URL "},
		{"download", "", "42 none.csv", 2, "", "check CARDDATA_UPDATER_URL, "},
		{"download", "", "-sandbox=false 42 none.csv", 2, "", "check CARDDATA_UPDATER_URL, "},
	} {
		cmd := command(t, test.program, test.stdin, strings.Fields(test.args)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdout, _ := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != test.code || string(stdout) != test.stdout || !strings.Contains(stderr.String(), test.stderr) {
			t.Errorf("%s %s: exit code %d, output:\n%s%s", test.program, test.args, code, stdout, &stderr)
		}
	}
	if _, err := os.Stat("none.csv"); err == nil {
		t.Error("a result was written that nobody sent")
	}
}

// TestRefund has the service respond, and compares what there is to do.
func TestRefund(t *testing.T) {
	for status, want := range map[int]int{201: 0, 429: 3, 422: 4, 403: 5, 503: 6, 409: 6} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600") // longer than the call waits
			w.WriteHeader(status)
		}))
		defer service.Close()
		cmd := command(t, "refund", record)
		cmd.Env = append(os.Environ(), "CARDDATA_REFUND_URL="+service.URL, "CARDDATA_ACCOUNT_ID=a")
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != want {
			t.Errorf("status %d: exit code %d, want %d:\n%s", status, cmd.ProcessState.ExitCode(), want, out)
		}
	}
}

func TestLoader(t *testing.T) {
	cmd := command(t, "loader", "", "-sandbox", "-addr", "127.0.0.1:0")
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	at := ""
	for lines := bufio.NewScanner(output); at == "" && lines.Scan(); {
		at = regexp.MustCompile(`http://\S+$`).FindString(lines.Text())
	}
	for card, want := range map[string]string{
		"4571736000000000": `{"brand":"VISA","country":"DK","type":"DEBIT"}`,
		"9999990000000000": "unknown card",
		"":                 "no card",
	} {
		status, got := http.StatusServiceUnavailable, ""
		for status == http.StatusServiceUnavailable { // a slow machine needs more than the program's 300 ms
			response, err := http.PostForm(at, url.Values{"card": {card}})
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			status, got = response.StatusCode, strings.TrimSpace(string(body))
		}
		if got != want {
			t.Errorf("%s: %s, want %s", card, got, want)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
}

// TestCopies checks that a program is short, and that one line stands between it and another
// module: a blank import, which nothing else in the program needs.
func TestCopies(t *testing.T) {
	const sandbox = "\t_ \"github.com/carddata/carddata-go/internal/sandbox/demo"
	for _, program := range programs {
		source, err := os.ReadFile(filepath.Join(program, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		text := string(source)
		if n := strings.Count(text, "\n"); n > 80 || strings.Count(text, "/internal/") != 1 || !strings.Contains(text, sandbox) {
			t.Errorf("%s has %d lines, or another import of an internal package than the sandbox", program, n)
		}
	}
}
