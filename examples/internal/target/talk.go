package target

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"

	"github.com/carddata/carddata-go/bins"
)

// Exit codes that all examples have in common.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitInterrupted = 130
)

type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// Usage is an Errorf of what only another command line, configuration or input can
// cure.
func Usage(format string, args ...any) error { return &usageError{Errorf(format, args...)} }

// Signals returns a context that ends with the first Ctrl-C or SIGTERM. The
// second ends the program at once, in case it should hang.
func Signals() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

// Parse parses the command line. Without ok the program ends with code.
func Parse(flags *flag.FlagSet, usage string, args []string, stdout, stderr io.Writer) (code int, ok bool) {
	// The flag package would quote arguments, which may be card numbers.
	flags.SetOutput(io.Discard)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0, false
	case err != nil:
		return Fail(context.Background(), stderr, Usage("%s: %v (-h helps)", flags.Name(), err)), false
	}
	return 0, true
}

// Fail prints err in one line, masked but for its paths, and returns the exit code that it calls for.
func Fail(ctx context.Context, stderr io.Writer, err error) int {
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "interrupted")
		return ExitInterrupted
	}
	fmt.Fprintln(stderr, line(printable(err.Error()), pathsOf(err)))
	if _, ok := errors.AsType[*usageError](err); ok || errors.Is(err, bins.ErrInvalidArgument) {
		return ExitUsage
	}
	return ExitFailed
}

// Line makes text from anywhere fit for a line of a terminal: without card
// numbers, line breaks and escape sequences.
func Line(text string) string { return line(printable(text), nil) }

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// IsTerminal tells whether a program's input or output is a terminal, or
// another character device.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const maxInput = 1 << 20

// Read reads all of r unless ctx ends first: whoever feeds a pipe may never
// finish.
func Read(ctx context.Context, r io.Reader) ([]byte, error) {
	type input struct {
		data []byte
		err  error
	}
	done := make(chan input, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
		done <- input{data, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case in := <-done:
		if in.err == nil && len(in.data) > maxInput {
			return nil, Usage("the input is longer than %d bytes", maxInput)
		}
		return in.data, in.err
	}
}
