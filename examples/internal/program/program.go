// Package program builds and runs the examples in tests, as their users do.
package program

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// A Result is what a program leaves behind.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// A Variables is an environment.
type Variables map[string]string

// Lookup is what an example takes in place of os.LookupEnv.
func (v Variables) Lookup(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

// Main builds the program in the current directory into *binary, as its users
// build it, and runs a package's tests.
func Main(m *testing.M, binary *string) {
	dir, err := os.MkdirTemp("", "example-test-")
	if err != nil {
		panic(err)
	}
	*binary = filepath.Join(dir, "example.exe")
	code := 1
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", *binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// Build builds the program in the current directory.
func Build(t testing.TB) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "example.exe")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// Command prepares a run of a binary with nothing of its environment set but
// what vars say.
func Command(t testing.TB, vars Variables, binary string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), binary, args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CARDDATA_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	for name, value := range vars {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// Run runs cmd to its end.
func Run(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	wait := Start(t, cmd)
	return wait()
}

// Start starts cmd. The function returned waits for its end.
func Start(t testing.TB, cmd *exec.Cmd) (wait func() Result) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() Result {
		cmd.Wait()
		return Result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	}
}

// Interrupt runs cmd against a service that never responds, sends it Ctrl-C when
// its request has arrived there, and returns what comes of it.
func Interrupt(t testing.TB, command func(url string) *exec.Cmd) Result {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent Ctrl-C on windows")
	}
	arrived := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	cmd := command(server.URL)
	wait := Start(t, cmd)
	done := make(chan Result)
	go func() { done <- wait() }()
	select {
	case <-arrived:
	case result := <-done:
		t.Fatalf("ended before its request: %+v", result)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	return <-done
}

var cardNumber = regexp.MustCompile(`4111[ -]?1111[ -]?1111[ -]?1111|4242424242424242|5555555555554444|378282246310005|6011111111111117`)

// CheckMasked fails the test if a test card number was printed, or a text that
// was to stay secret.
func (r Result) CheckMasked(t testing.TB, secrets ...string) {
	t.Helper()
	for name, text := range map[string]string{"output": r.Stdout, "error output": r.Stderr} {
		if found := cardNumber.FindString(text); found != "" {
			t.Errorf("%s holds the card number %s:\n%s", name, found, text)
		}
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %q:\n%s", name, secret, text)
			}
		}
	}
}
