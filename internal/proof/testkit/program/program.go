// Package program builds and runs programs in tests, as their users do.
package program

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A Result is what a program leaves behind.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Main builds the program in the current directory into *binary, and runs a package's
// tests.
func Main(m *testing.M, binary *string) {
	dir, err := os.MkdirTemp("", "program-test-")
	if err != nil {
		panic(err)
	}
	*binary = filepath.Join(dir, "program.exe")
	code := 1
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", *binary, ".").CombinedOutput(); err == nil {
		code = m.Run()
	} else {
		os.Stderr.Write(out)
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// Command prepares a run of a binary. Its environment has no variables that begin with
// CARDDATA_, except vars.
func Command(t testing.TB, vars map[string]string, binary string, args ...string) *exec.Cmd {
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
	return Start(t, cmd)()
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

// WaitFor waits for a condition that a program brings about.
func WaitFor(t testing.TB, condition func() bool) {
	t.Helper()
	for !condition() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test ended first")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

var cardNumber = regexp.MustCompile(`4111[ -]?1111[ -]?1111[ -]?1111|4242424242424242|5555555555554444|378282246310005|6011111111111117`)

// CheckMasked fails the test if a test card number was printed, or a text that was to
// stay secret.
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
