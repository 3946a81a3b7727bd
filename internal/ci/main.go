// Ci holds the checks of .ci/run that are programs of their own. Each is a
// command:
//
//	go run ./internal/ci files                          no binaries, nothing above 1 MB is tracked
//	go run ./internal/ci zip                            what users of the module download is small
//	go run ./internal/ci fuzz [-n RUNS]                 every fuzz target of the module in this directory
//	go run ./internal/ci coverage FILE PERCENT PACKAGE… each package is above PERCENT
//	go run ./internal/ci readme FILE                    the commands under "Try it now" print what it shows
//	go run ./internal/ci components [PACKAGE…]          the modules that programs with these packages link
//	go run ./internal/ci vulnerabilities                govulncheck, where its database can be reached
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
)

var commands = map[string]func(ctx context.Context, out io.Writer, args []string) error{
	"files":           checkFiles,
	"zip":             checkZip,
	"fuzz":            runFuzzTargets,
	"coverage":        checkCoverage,
	"readme":          runReadme,
	"components":      listComponents,
	"vulnerabilities": findVulnerabilities,
}

var errUsage = errors.New("usage: ci files | zip | fuzz | coverage | readme | components | vulnerabilities (see the package comment)")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) == 0 || commands[args[0]] == nil {
		return errUsage
	}
	return commands[args[0]](ctx, out, args[1:])
}

// output returns what a command prints, and passes its errors on.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	return text, nil
}

// pass runs a command whose output is the caller's.
func pass(ctx context.Context, out io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", cmd, err)
	}
	return nil
}
