package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit/program"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/updater"
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

func call(t *testing.T, vars map[string]string, args ...string) program.Result {
	t.Helper()
	return program.Run(t, program.Command(t, vars, binary, args...))
}

// serve starts a service of the test's own.
func serve(t *testing.T) (*sandbox.Engine, map[string]string) {
	t.Helper()
	fake := sandbox.NewFake(t, sandbox.Updater)
	return fake.Engine, map[string]string{
		"CARDDATA_UPDATER_URL": fake.URL(), "CARDDATA_ACCESS_TOKEN": "token-canary", "CARDDATA_MERCHANT_ID": "merchant-canary",
	}
}

func hash(t *testing.T, content io.Reader) string {
	t.Helper()
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// checkFile fails the test unless path has the content, privately, and no part is left
// beside it.
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
	if info, err := file.Stat(); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%s has the mode %v (%v)", path, info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.part")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestUsage has what cannot be meant: nothing is sent, and nothing is written.
func TestUsage(t *testing.T) {
	engine, live := serve(t)
	dir := t.TempDir()
	out, file, link := filepath.Join(dir, "x"), filepath.Join(dir, "{merchant}"), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("elsewhere", link); err != nil {
		t.Skip(err)
	}
	for _, test := range []struct {
		vars   map[string]string
		args   string
		stderr string
	}{
		{nil, "-job 42 -o " + out, "missing or empty: CARDDATA_UPDATER_URL, CARDDATA_ACCESS_TOKEN, CARDDATA_MERCHANT_ID (-sandbox"},
		{live, "-o " + out, "fetch: -job is missing"},
		{live, "-job 42", "fetch: -o is missing"},
		{live, "-job .. -o " + out, "updater: download: the job id "},
		{live, "-job 42 -size 1GiB -o " + out, "fetch: -size and -flaky are for the sandbox"},
		{live, "4111111111111111", "fetch: no arguments besides"},
		{live, "-4111111111111111", "fetch: flag provided but not defined: -411111******1111"},
		{live, "-size 4111111111111111x", `fetch: invalid value "411111******1111x" for flag -size: not a size`},
		{live, "-job 42 -parallel 0 -o " + out, "fetch: -parallel must be"},
		{live, "-not-ready 404,", "fetch: invalid value"},
		{live, "-job 42 -not-ready 404 -o " + out, "fetch: -not-ready needs -wait"},
		{live, "-job 42 -read xml", "fetch: -read must be csv or json"},
		{live, "-job 42 -read csv -o " + out, "fetch: -read prints the rows, without -o"},
		{live, "-job 42 -merchant a -merchant b -o " + out, "fetch: several merchants need -o with {merchant}"},
		{live, "-job 42 -merchant a -merchant A -o " + file, "fetch: two merchants have the same file"},
		{live, "-job 42 -merchant .. -o " + file, "fetch: a merchant's id cannot be"},
		{live, "-job 42 -o " + filepath.Join(dir, "missing", "result"), "updater: download: "},
		{live, "-job 42 -o " + link, "fetch: " + link + " is a symbolic link"},
		{live, "-job 42 -o " + dir, "updater: download: the path cannot be replaced: is a directory"},
	} {
		got := call(t, test.vars, strings.Fields(test.args)...)
		if got.Code != 2 || got.Stdout != "" || !strings.HasPrefix(got.Stderr, test.stderr) || strings.Count(got.Stderr, "\n") > 2 {
			t.Errorf("%s: %+v, want %s", test.args, got, test.stderr)
		}
		got.CheckMasked(t, "token-canary", "merchant-canary")
		if left, _ := os.ReadDir(dir); len(left) > 0 || engine.RequestCount(sandbox.Updater) > 0 {
			t.Fatalf("%s: something was sent, or written: %v", test.args, left)
		}
	}
	if got := call(t, nil, "-h"); got.Code != 0 || got.Stdout != usage {
		t.Errorf("%+v", got)
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.csv")
	engine, vars := serve(t)
	for _, verb := range []string{"wrote", "unchanged"} {
		got := call(t, vars, "-job", "42", "-o", path)
		if got.Code != 0 || got.Stdout != "" || got.Stderr != verb+" "+path+": 200 B, text/csv; charset=utf-8, SHA-256 "+hash(t, strings.NewReader(result))+"\n" {
			t.Errorf("%+v", got)
		}
		got.CheckMasked(t, "token-canary", "merchant-canary")
		checkFile(t, path, strings.NewReader(result))
	}
	if sent := engine.Requests(sandbox.Updater); len(sent) != 2 || sent[1].Status != 304 {
		t.Errorf("sent %+v", sent)
	}
	if got := call(t, vars, "-job", "42", "-o", "-"); got.Code != 0 || got.Stdout != result || got.Stderr != "" {
		t.Errorf("%+v", got)
	}
	if got := call(t, vars, "-job", "4111111111111111", "-o", path); got.Code != 1 || !strings.HasPrefix(got.Stderr, "updater: download: refused (status 404") ||
		!strings.HasSuffix(got.Stderr, "\ncheck -job; if a job that is not ready answers this, -not-ready waits for it\n") {
		t.Errorf("%+v", got)
	}
	checkFile(t, path, strings.NewReader(result))
}

func TestFlaky(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.csv")
	got := call(t, nil, "-sandbox", "-size", "64MiB", "-flaky", "-o", path)
	if got.Code != 0 || !regexp.MustCompile(`: 64 MiB, text/csv; charset=utf-8, \d\d requests, SHA-256 `).MatchString(got.Stderr) {
		t.Errorf("%+v", got)
	}
	checkFile(t, path, sandbox.Synthetic(sandbox.CSV, 64<<20))
}

func TestUnverified(t *testing.T) {
	engine, vars := serve(t)
	for range 4 {
		engine.Script(sandbox.Updater, sandbox.Fault{Header: http.Header{"Content-Length": nil, "Transfer-Encoding": {"identity"}}})
	}
	path := filepath.Join(t.TempDir(), "result.csv")
	for _, to := range []string{"-", path} {
		if got := call(t, vars, "-job", "42", "-o", to); got.Code != 1 || got.Stdout != "" || !strings.HasSuffix(got.Stderr, "-accept-unverified accepts it nevertheless\n") {
			t.Errorf("%+v", got)
		}
		if got := call(t, vars, "-job", "42", "-accept-unverified", "-o", to); got.Code != 0 || (to == "-") != (got.Stdout == result) {
			t.Errorf("%+v", got)
		}
	}
	checkFile(t, path, strings.NewReader(result))
}

func TestWaiting(t *testing.T) {
	notReady := sandbox.Fault{Status: 404, Body: new(`{"error":{"code":"not_ready","message":"","details":{}}}`)}
	engine, vars := serve(t)
	for _, test := range []struct {
		fault  sandbox.Fault
		args   string
		code   int
		stderr string
	}{
		{notReady, "-wait 1m -not-ready x,not_ready", 0, `^(the job is not ready \(status 404\), asking again\n){2}wrote .*\n$`},
		{notReady, "-wait 1m -not-ready 404", 0, `^(the job is not ready \(status 404\), asking again\n){2}wrote .*\n$`},
		{sandbox.Fault{Status: 202}, "-wait 1m", 0, `^(the job is not ready \(status 202\), asking again\n){2}wrote .*\n$`},
		{notReady, "-wait 1m -not-ready not,ready,409", 1, `^updater: .*\ncheck -job; `},
		{sandbox.Fault{Status: 202}, "", exitLater, `^updater: .*\nrun the same command later`},
	} {
		engine.Reset()
		engine.Script(sandbox.Updater, test.fault, test.fault)
		path := filepath.Join(t.TempDir(), "result")
		got := call(t, vars, append([]string{"-job", "42", "-interval", "10ms", "-o", path}, strings.Fields(test.args)...)...)
		if got.Code != test.code || !regexp.MustCompile(test.stderr).MatchString(got.Stderr) {
			t.Errorf("%s: %+v", test.args, got)
		}
	}
}

// A gate is a content that stops in the middle until it opens. The first half is far
// larger than the buffers of a connection, so most of it has arrived when reached is closed.
type gate struct {
	*io.SectionReader
	reached, open chan struct{}
	once          sync.Once
}

const (
	gateSize = 64 << 20
	gateAt   = 32 << 20
)

func newGate() *gate {
	return &gate{SectionReader: sandbox.Synthetic(sandbox.CSV, gateSize), reached: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= gateAt {
		g.once.Do(func() { close(g.reached) })
		<-g.open
	}
	return g.SectionReader.ReadAt(p, offset)
}

// TestMerchants has four merchants, two at a time. One has no such job.
func TestMerchants(t *testing.T) {
	engine, vars := serve(t)
	delete(vars, "CARDDATA_MERCHANT_ID")
	one, two := newGate(), newGate()
	engine.SetJob("7", sandbox.Job{Content: one, Merchant: "one"})
	engine.SetJob("7", sandbox.Job{Content: two, Merchant: "t/wo"})
	engine.SetJob("7", sandbox.Job{Content: strings.NewReader("of four"), Merchant: "four"})
	dir := t.TempDir()
	args := []string{"-job", "7", "-merchant", "one", "-merchant", "t/wo", "-merchant", "three", "-merchant", "four",
		"-parallel", "2", "-o", filepath.Join(dir, "result-{merchant}")}
	path := filepath.Join(dir, "result-")
	wait := program.Start(t, program.Command(t, vars, binary, args...))
	<-one.reached
	<-two.reached
	if n := engine.RequestCount(sandbox.Updater); n != 2 {
		t.Errorf("%d requests at the same time", n)
	}
	if got := call(t, vars, "-job", "7", "-merchant", "one", "-o", path+"one"); got.Code != exitLater || !strings.HasSuffix(got.Stderr, "\nanother download writes to the same file: wait for its end\n") {
		t.Errorf("%+v", got)
	}
	close(one.open)
	close(two.open)
	got := wait()
	lines := strings.Split(strings.TrimSuffix(got.Stderr, "\n"), "\n")
	if got.Code != 1 || len(lines) != 5 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []string{
		"wrote " + path + "one: 64 MiB, ", "wrote " + path + "t%2Fwo: 64 MiB, ", "wrote " + path + "four: 7 B, ",
		path + "three: updater: download: refused (status 404", "check -job; ",
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %s, want %s", i, lines[i], want)
		}
	}
	checkFile(t, path+"t%2Fwo", sandbox.Synthetic(sandbox.CSV, gateSize))
	checkFile(t, path+"four", strings.NewReader("of four"))
	if _, err := os.Stat(path + "three"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file without content")
	}
	if got := call(t, vars, args...); strings.Count(got.Stderr, "unchanged ") != 3 {
		t.Errorf("the next night: %+v", got)
	}
}

// TestKilledAndResumed ends a download in the middle, and runs the same command again.
func TestKilledAndResumed(t *testing.T) {
	for name, signal := range map[string]os.Signal{"interrupted": os.Interrupt, "killed": os.Kill} {
		if runtime.GOOS == "windows" && signal == os.Interrupt {
			continue // a process cannot be sent Ctrl-C
		}
		engine, vars := serve(t)
		content := newGate()
		engine.SetJob("7", sandbox.Job{Content: content})
		path := filepath.Join(t.TempDir(), "result.csv")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := program.Command(t, vars, binary, "-job", "7", "-o", path)
		wait := program.Start(t, cmd)
		<-content.reached
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		got := wait()
		if signal == os.Interrupt && (got.Code != 130 || got.Stderr != "interrupted\n"+again+"\n") {
			t.Errorf("%s: %+v", name, got)
		}
		if old, _ := os.ReadFile(path); got.Code == 0 || string(old) != "old" {
			t.Errorf("%s: exit code %d; the old file was changed", name, got.Code)
		}
		close(content.open)
		if got := call(t, vars, "-job", "7", "-o", path); got.Code != 0 || !strings.Contains(got.Stderr, " kept from an earlier run, ") {
			t.Errorf("%s: %+v", name, got)
		}
		checkFile(t, path, sandbox.Synthetic(sandbox.CSV, gateSize))
		requests := engine.Requests(sandbox.Updater)
		from := strings.Trim(requests[len(requests)-1].Header.Get("Range"), "bytes=-")
		if n, err := strconv.Atoi(from); err != nil || n < gateAt/2 || len(requests) != 2 {
			t.Errorf("%s: the second of %d requests begins at %q", name, len(requests), from)
		}
	}
}

func TestAdvice(t *testing.T) {
	failed := func(err error) failure { return failure{err: &updater.Error{Operation: "download", Err: err}} }
	for _, test := range []struct {
		failures []failure
		code     int
		advice   string
	}{
		{[]failure{{}, {}}, 0, ""},
		{[]failure{failed(updater.ErrUnauthorized)}, 1, "check CARDDATA_ACCESS_TOKEN: it may have expired\n"},
		{[]failure{failed(syscall.ENOSPC)}, 3, "free some space, and " + again + "\n"},
		{[]failure{failed(fs.ErrPermission)}, 2, "check the rights of the directory: the result gathers beside its file\n"},
		{[]failure{failed(updater.ErrServer), {}, failed(updater.ErrTimeout)}, 3, again + "\n"},
		{[]failure{failed(updater.ErrServer), failed(updater.ErrUnauthorized)}, 1, "check CARDDATA_ACCESS_TOKEN: it may have expired\n"},
		{[]failure{failed(updater.ErrUnauthorized), failed(updater.ErrInvalidArgument)}, 2, ""},
	} {
		var out strings.Builder
		c := config{stderr: &out}
		if code := c.fail(t.Context(), test.failures...); code != test.code || !strings.HasSuffix(out.String(), "\n"+test.advice) && out.Len() > 0 {
			t.Errorf("%v: exit code %d, output:\n%s", test.failures, code, &out)
		}
	}
}
