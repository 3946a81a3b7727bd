// Package cli is what the tools share: how they read flags and environment, print
// errors, and end.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/mask"
)

// Exit codes that all tools have in common.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitInterrupted = 130
)

type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

// Usage is fmt.Errorf for mistakes in the command line, the environment or the input.
func Usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// Signals returns a context that ends with the first Ctrl-C or SIGTERM. The second ends
// the program at once, in case it hangs.
func Signals() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

// Parse parses the command line, which has no arguments besides flags. Without ok the
// program ends with code.
func Parse(flags *flag.FlagSet, usage string, args []string, stdout, stderr io.Writer) (code int, ok bool) {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0, false
	case err == nil && flags.NArg() > 0:
		err = errors.New("no arguments besides flags")
	}
	if err != nil {
		// It quotes what was typed, which may be a card number.
		return Fail(context.Background(), stderr, Usage("%s: %s (-h helps)", flags.Name(), Line(err.Error()))), false
	}
	return 0, true
}

// Fail prints err in one line, and returns the exit code. Text of the service is masked;
// paths are printed as they were typed.
func Fail(ctx context.Context, stderr io.Writer, err error) int {
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "interrupted")
		return ExitInterrupted
	}
	_, usage := errors.AsType[*usageError](err)
	usage = usage || errors.Is(err, bins.ErrInvalidArgument)
	file, isFile := errors.AsType[*fs.PathError](err)
	switch {
	case isFile && strings.Trim(file.Path, "0123456789 -") == "": // typed in place of a path
		fmt.Fprintln(stderr, Line(err.Error()))
	case isFile, usage:
		fmt.Fprintln(stderr, printable(err.Error()))
	default:
		fmt.Fprintln(stderr, Line(err.Error()))
	}
	if usage {
		return ExitUsage
	}
	return ExitFailed
}

// Line removes card numbers, line breaks and escape sequences from text for a terminal.
func Line(text string) string { return mask.Text(printable(text)) }

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// InsecureHTTP is the variable that allows http beyond this machine, as to a sandbox in
// another container, when it is 1.
const InsecureHTTP = "CARDDATA_INSECURE_HTTP"

// Environment returns the variables with these names. The first is a base URL. A missing
// one is an error: nothing takes the place of a service that is not named.
func Environment(env func(string) (string, bool), names ...string) (values map[string]string, insecure bool, err error) {
	values = make(map[string]string)
	var missing []string
	for _, name := range names {
		if values[name], _ = env(name); values[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, false, Usage("missing or empty: %s (-sandbox uses a sandbox with invented data)", strings.Join(missing, ", "))
	}
	allowed, _ := env(InsecureHTTP)
	if allowed != "" && allowed != "0" && allowed != "1" {
		return nil, false, Usage("%s is neither 0 nor 1", InsecureHTTP)
	}
	return values, allowed == "1", CheckURL(names[0], values[names[0]], allowed == "1")
}

// CheckURL refuses a base URL that cannot be used, or that sends a credential in the clear.
func CheckURL(name, base string, insecure bool) error {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https":
		return Usage("%s is no https URL", name)
	case u.Scheme == "http" && !insecure && !isLocal(u.Hostname()):
		return Usage("%s is http to another machine; %s=1 allows that", name, InsecureHTTP)
	}
	return nil
}

func isLocal(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
