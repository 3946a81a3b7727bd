package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/updater"
)

func TestExitCodes(t *testing.T) {
	engine, live := serve(t)
	noMerchant := variables(live["CARDDATA_UPDATER_URL"])
	delete(noMerchant, "CARDDATA_MERCHANT_ID")
	dir := t.TempDir()
	file, link := filepath.Join(dir, "{merchant}"), filepath.Join(dir, "link")
	if err := os.Symlink("elsewhere", link); err != nil {
		t.Skip(err)
	}
	for _, test := range []struct {
		vars   program.Variables
		args   []string
		code   int
		stderr string // of the line after the banner
	}{
		{nil, []string{"-h"}, 0, ""},
		{live, []string{"-job", "42"}, 0, ""},
		{noMerchant, []string{"-job", "42", "-merchant", "m"}, 0, ""},
		{live, nil, 2, "download: -job is missing"},
		{live, []string{"-job", ".."}, 2, "updater: download: the job id "},
		{live, []string{"-job", "42", "-merchant", "a\nb"}, 2, "updater: "},
		{live, []string{"-job", "42", "-size", "1GiB"}, 2, "download: -size and -flaky are for the sandbox"},
		{live, []string{"-job", "42", "-flaky"}, 2, "download: -size and -flaky are for the sandbox"},
		{nil, []string{"4111111111111111"}, 2, "download: no arguments besides"},
		{nil, []string{"-4111111111111111"}, 2, "download: flag provided but not defined: -411111******1111"},
		{nil, []string{"-size", "4111111111111111x"}, 2, `download: invalid value "411111******1111x" for flag -size: not a size`},
		{nil, []string{"-size", "-1"}, 2, "download: invalid value"},
		{nil, []string{"-parallel", "0"}, 2, "download: -parallel must be"},
		{nil, []string{"-interval", "0s"}, 2, "download: -parallel must be"},
		{nil, []string{"-not-ready", "404,"}, 2, "download: invalid value"},
		{nil, []string{"-read", "xml"}, 2, "download: -read must be csv, ndjson or json"},
		{nil, []string{"-merchant", "a", "-merchant", "b"}, 2, "download: several merchants need -o with {merchant}"},
		{nil, []string{"-merchant", "a", "-merchant", "b", "-o", dir + "/x"}, 2, "download: several merchants need -o with {merchant}"},
		{nil, []string{"-merchant", "a", "-merchant", "b", "-o", file, "-read", "csv"}, 2, "download: -read takes one merchant"},
		{nil, []string{"-merchant", "a", "-merchant", "A", "-o", file}, 2, "download: two merchants have the same file"},
		{nil, []string{"-merchant", "..", "-o", file}, 2, "download: a merchant's id cannot be"},
		{nil, []string{"-o", filepath.Join(dir, "missing", "result")}, 2, "updater: download: "},
		{nil, []string{"-o", link}, 2, "download: " + link + " is a symbolic link"},
		{nil, []string{"-o", link + "s/"}, 2, "updater: download: the path names no file"},
		{nil, []string{"-o", dir}, 2, "updater: download: the path cannot be replaced: is a directory"},
		{noMerchant, []string{"-job", "42"}, 2, "missing or empty: CARDDATA_MERCHANT_ID ("},
		{live, []string{"-job", "4111111111111111"}, 1, "updater: download: refused (status 404"},
		{live, []string{"-job", "42", "-read", "json"}, 1, "after 0 rows: the result is no JSON array"},
	} {
		before := engine.RequestCount(sandbox.Updater)
		got := call(t.Context(), test.vars, test.args...)
		_, message, banner := strings.Cut(got.Stderr, "\n")
		if !banner || !strings.HasPrefix(got.Stderr, "live ") && !strings.HasPrefix(got.Stderr, "sandbox ") {
			message = got.Stderr
		}
		if got.Code != test.code || !strings.HasPrefix(message, test.stderr) || strings.Count(message, "\n") > 2 {
			t.Errorf("%q: %+v", test.args, got)
		}
		if got.Code == 2 && engine.RequestCount(sandbox.Updater) != before {
			t.Errorf("%q: something was sent", test.args)
		}
		if got.Code != 0 {
			got.CheckMasked(t, "token-canary", "merchant-canary")
		}
	}
}

func TestAdvice(t *testing.T) {
	failure := func(err error) error { return &updater.Error{Operation: "download", Err: err} }
	usage := failure(updater.ErrInvalidArgument)
	for _, test := range []struct {
		failures []error
		code     int
		advice   string
	}{
		{nil, 0, ""},
		{[]error{nil, nil}, 0, ""},
		{[]error{errors.New("else")}, 1, ""},
		{[]error{failure(updater.ErrUnauthorized)}, 1, "check CARDDATA_ACCESS_TOKEN: it may have expired\n"},
		{[]error{failure(updater.ErrServer)}, 3, again + "\n"},
		{[]error{failure(fmt.Errorf("%w: %w", updater.ErrNotReady, updater.ErrNotFound))}, 3, "run the same command later, or with a longer -wait\n"},
		{[]error{failure(syscall.ENOSPC)}, 3, "free some space, and " + again + "\n"},
		{[]error{failure(fs.ErrPermission)}, 2, "check the rights of the directory: the result gathers beside its file\n"},
		{[]error{failure(updater.ErrServer), failure(updater.ErrTimeout)}, 3, again + "\n"},
		{[]error{failure(updater.ErrServer), nil, errors.New("else")}, 1, again + "\n"},
		{[]error{failure(updater.ErrServer), usage, errors.New("else")}, 2, again + "\n"},
	} {
		var out strings.Builder
		code := fail(t.Context(), &out, test.failures...)
		var lines strings.Builder
		for _, err := range test.failures {
			if err != nil {
				lines.WriteString(err.Error() + "\n")
			}
		}
		if code != test.code || out.String() != lines.String()+test.advice {
			t.Errorf("%v: exit code %d, output:\n%s", test.failures, code, &out)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	if code := fail(ended, &out, failure(context.Canceled), failure(updater.ErrServer)); code != 130 || out.String() != "interrupted\n" {
		t.Errorf("exit code %d, output:\n%s", code, &out)
	}
}
