package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"syscall"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/updater"
)

const again = "run the same command again: with -o it goes on where this one ended, if the service allows"

// An advice says what to do about a failure, and with which code to exit.
type advice struct {
	condition error
	advice    string
	code      int
}

// advices are for what this program's user can do something about.
var advices = []advice{
	{updater.ErrNotReady, "run the same command later, or with a longer -wait", exitLater},
	{updater.ErrBusy, "another download writes to the same file: wait for its end", exitLater},
	{updater.ErrRefused, "the result is not of the format that -read names", target.ExitFailed},
	{updater.ErrUnauthorized, "check CARDDATA_ACCESS_TOKEN: it may have expired", target.ExitFailed},
	{updater.ErrForbidden, "check that the credential may act for the merchant", target.ExitFailed},
	{updater.ErrNotFound, "check -job; if a job that is not ready answers this, -not-ready waits for it", target.ExitFailed},
	{updater.ErrUnverified, "it may be cut off: -accept-unverified takes it nevertheless", target.ExitFailed},
	{updater.ErrRedirect, "check CARDDATA_UPDATER_URL; -redirect-host follows redirects to a host that you know", target.ExitFailed},
	{syscall.ENOSPC, "free some space, and " + again, exitLater},
	{syscall.EBUSY, "-o is mounted, as containers do with single files: mount its directory", target.ExitUsage},
	{syscall.EISDIR, "-o names a file", target.ExitUsage},
	{fs.ErrNotExist, "the directory of -o must exist", target.ExitUsage},
	{fs.ErrPermission, "check the rights of the directory: the result gathers beside its file", target.ExitUsage},
}

func adviceFor(err error) advice {
	for _, a := range advices {
		if errors.Is(err, a.condition) {
			return a
		}
	}
	failed, ok := errors.AsType[*updater.Error](err)
	switch {
	case ok && failed.Retryable():
		return advice{advice: again, code: exitLater}
	case errors.Is(err, updater.ErrBadResponse):
		return advice{advice: "something may stand between you and the service: check CARDDATA_UPDATER_URL", code: target.ExitFailed}
	}
	return advice{}
}

// exitLater is for failures that the same command may overcome.
const exitLater = 3

// fail prints each failure in a line, then what to do about them, and returns
// the worst of their exit codes.
func fail(ctx context.Context, stderr io.Writer, failures ...error) int {
	code, advised := 0, map[string]bool{}
	for _, err := range failures {
		if err == nil {
			continue
		}
		its := target.Fail(ctx, stderr, err)
		if its == target.ExitInterrupted {
			return its
		}
		if a := adviceFor(err); a.advice != "" {
			its, advised[a.advice] = a.code, true
		}
		code = worse(code, its)
	}
	for _, advice := range slices.Sorted(maps.Keys(advised)) {
		fmt.Fprintln(stderr, advice)
	}
	return code
}

// worse returns the exit code that says more: what only another command line
// cures, before what nothing cures, before what time may cure.
func worse(a, b int) int {
	for _, code := range []int{target.ExitUsage, target.ExitFailed, exitLater} {
		if a == code || b == code {
			return code
		}
	}
	return 0
}
