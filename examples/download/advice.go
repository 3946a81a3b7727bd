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

// advices say what to do about a failure, and with which code to exit: the first
// that fits.
var advices = []struct {
	condition error
	advice    string
	code      int
}{
	{updater.ErrNotReady, "run the same command later, or with a longer -wait", exitLater},
	{updater.ErrBusy, "another download writes to the same file: wait for its end", exitLater},
	{updater.ErrChanged, "run the same command again for the whole of what the service has now", exitLater},
	{updater.ErrUnauthorized, "check CARDDATA_ACCESS_TOKEN: it may have expired", target.ExitFailed},
	{updater.ErrForbidden, "check that the credential may act for the merchant", target.ExitFailed},
	{updater.ErrNotFound, "check -job; if a job that is not ready answers this, -not-ready waits for it", target.ExitFailed},
	{updater.ErrUnverified, "it may be cut off: -accept-unverified takes it nevertheless", target.ExitFailed},
	{updater.ErrRateLimited, again, exitLater},
	{updater.ErrNoAnswer, again, exitLater},
	{updater.ErrTimeout, again, exitLater},
	{updater.ErrServer, again, exitLater},
	{updater.ErrBadResponse, "something may stand between you and the service; " + again, exitLater},
	{syscall.ENOSPC, "free some space, and " + again, exitLater},
	{syscall.EISDIR, "-o names a file", target.ExitUsage},
	{fs.ErrNotExist, "the directory of -o must exist", target.ExitUsage},
	{fs.ErrPermission, "check the rights of the directory: the result gathers beside its file", target.ExitUsage},
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
		for _, a := range advices {
			if errors.Is(err, a.condition) {
				its, advised[a.advice] = a.code, true
				break
			}
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
