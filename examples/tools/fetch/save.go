package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/dustin/go-humanize"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
	"github.com/carddata/carddata-go/updater"
)

// merchantMark stands for the merchant in the name of a file.
const merchantMark = "{merchant}"

// A task is one merchant's file.
type task struct {
	client *updater.Client
	path   string
	file   *updater.File
	err    error
}

// tasks makes sure that each merchant has a file of its own before anything is sent. A
// merchant id may hold anything, also a slash.
func (c *config) tasks(client *updater.Client) ([]*task, error) {
	var tasks []*task
	taken := make(map[string]bool)
	for _, merchant := range c.merchants {
		name := url.PathEscape(merchant)
		if strings.Trim(name, ".") == "" && strings.Contains(c.path, merchantMark) {
			return nil, cli.Usage("fetch: a merchant's id cannot be the name of a file")
		}
		path := strings.ReplaceAll(c.path, merchantMark, name)
		key := strings.ToLower(filepath.Clean(path)) // file systems may not tell large from small letters
		if taken[key] {
			return nil, cli.Usage("fetch: two merchants have the same file %s", path)
		}
		taken[key] = true
		// The library would replace the link, such as /dev/stdout.
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSymlink {
			return nil, cli.Usage("fetch: %s is a symbolic link: -o names the file itself", path)
		}
		its, err := client.ForMerchant(merchant)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, &task{client: its, path: path})
	}
	return tasks, nil
}

// save downloads the files of all merchants, and continues if one fails.
func (c *config) save(ctx context.Context, client *updater.Client) int {
	tasks, err := c.tasks(client)
	if err != nil {
		return cli.Fail(ctx, c.stderr, err)
	}
	show, hide := newBar(c.stderr)
	if len(tasks) > 1 {
		show = nil
	}
	var running sync.WaitGroup
	slots := make(chan struct{}, c.parallel)
	for _, t := range tasks {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			t.file, t.err = t.client.DownloadFile(ctx, c.job, t.path, updater.FileOptions{
				Progress: show, IfChanged: true, AcceptUnverified: c.acceptUnverified,
			})
		})
	}
	running.Wait()
	hide()
	var failures []failure
	for _, t := range tasks {
		switch {
		case t.err == nil:
			verb := "wrote"
			if t.file.Unchanged {
				verb = "unchanged"
			}
			fmt.Fprintf(c.stderr, "%s %s: %s\n", verb, t.path, summary(t.file))
		case len(tasks) == 1:
			failures = append(failures, failure{"", t.err})
		default:
			failures = append(failures, failure{t.path + ": ", t.err})
		}
	}
	code := c.fail(ctx, failures...)
	if code == cli.ExitInterrupted {
		fmt.Fprintln(c.stderr, again)
	}
	return code
}

func summary(f *updater.File) string {
	text := humanize.IBytes(uint64(f.Size))
	if f.ContentType != "" {
		text += ", " + cli.Line(f.ContentType)
	}
	if f.Attempts > 1 {
		text += fmt.Sprintf(", %d requests", f.Attempts)
	}
	if f.ResumedBytes > 0 {
		text += fmt.Sprintf(", %s kept from an earlier run", humanize.IBytes(uint64(f.ResumedBytes)))
	}
	return text + ", SHA-256 " + f.SHA256
}

const (
	exitLater = 3
	again     = "run the same command again: it continues, if the service allows"
)

// An advice says what to do about a failure, and with which code to exit.
type advice struct {
	condition error
	text      string
	code      int
}

// advices are for failures that the program's user can do something about.
var advices = []advice{
	{updater.ErrNotReady, "run the same command later, or with a longer -wait", exitLater},
	{updater.ErrBusy, "another download writes to the same file: wait for its end", exitLater},
	{updater.ErrUnauthorized, "check CARDDATA_ACCESS_TOKEN: it may have expired", cli.ExitFailed},
	{updater.ErrForbidden, "check that the credential may act for the merchant", cli.ExitFailed},
	{updater.ErrNotFound, "check -job; if a job that is not ready answers this, -not-ready waits for it", cli.ExitFailed},
	{updater.ErrUnverified, "it may be cut off: -accept-unverified accepts it nevertheless", cli.ExitFailed},
	{syscall.ENOSPC, "free some space, and " + again, exitLater},
	{syscall.EBUSY, "-o is mounted, as containers do with single files: mount its directory", cli.ExitUsage},
	{syscall.EISDIR, "-o names a file", cli.ExitUsage},
	{fs.ErrNotExist, "the directory of -o must exist", cli.ExitUsage},
	{fs.ErrPermission, "check the rights of the directory: the result gathers beside its file", cli.ExitUsage},
}

func adviceFor(err error) advice {
	for _, a := range advices {
		if errors.Is(err, a.condition) {
			return a
		}
	}
	failed, ok := errors.AsType[*updater.Error](err)
	switch {
	case errors.Is(err, updater.ErrInvalidArgument):
		return advice{code: cli.ExitUsage}
	case ok && failed.Retryable():
		return advice{text: again, code: exitLater}
	case ok && failed.StatusCode/100 == 3:
		return advice{text: "check CARDDATA_UPDATER_URL; -redirect-host follows redirects to a host that you know", code: cli.ExitFailed}
	case errors.Is(err, updater.ErrBadResponse):
		return advice{text: "something may stand between you and the service: check CARDDATA_UPDATER_URL", code: cli.ExitFailed}
	}
	return advice{code: cli.ExitFailed}
}

// A failure is an error of the file that its prefix names.
type failure struct {
	prefix string
	err    error
}

// fail prints each failure in a line, and what to do about the worst. It returns the
// worst exit code, in the order 2, 1, 3.
func (c *config) fail(ctx context.Context, failures ...failure) (code int) {
	var worst advice
	rank := map[int]int{exitLater: 1, cli.ExitFailed: 2, cli.ExitUsage: 3}
	for _, f := range failures {
		if f.err == nil {
			continue
		}
		if ctx.Err() != nil {
			return cli.Fail(ctx, c.stderr, f.err)
		}
		fmt.Fprint(c.stderr, f.prefix)
		cli.Fail(ctx, c.stderr, f.err)
		if a := adviceFor(f.err); rank[a.code] > rank[worst.code] {
			worst = a
		}
	}
	if worst.text != "" {
		fmt.Fprintln(c.stderr, worst.text)
	}
	return worst.code
}
