package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/dustin/go-humanize"

	"github.com/carddata/carddata-go/examples/internal/target"
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

// tasks makes sure that each merchant has a file of its own before anything is
// sent. A merchant id may hold anything, also a slash.
func (c *config) tasks(client *updater.Client) ([]*task, error) {
	var tasks []*task
	taken := make(map[string]bool)
	for _, merchant := range c.merchants {
		name := url.PathEscape(merchant)
		if strings.Trim(name, ".") == "" && strings.Contains(c.path, merchantMark) {
			return nil, target.Usage("download: a merchant's id cannot be the name of a file")
		}
		path := strings.ReplaceAll(c.path, merchantMark, name)
		// File systems may not tell large from small letters.
		key := strings.ToLower(filepath.Clean(path))
		if taken[key] {
			return nil, target.Usage("download: two merchants have the same file %s", target.Path(path))
		}
		taken[key] = true
		// The library would replace the link, and who names one, such as /dev/stdout,
		// hardly means that.
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSymlink {
			return nil, target.Usage("download: %s is a symbolic link: -o names the file itself", target.Path(path))
		}
		its, err := client.ForMerchant(merchant)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, &task{client: its, path: path})
	}
	return tasks, nil
}

// save downloads the files of all merchants, and goes on if one fails.
func (c *config) save(ctx context.Context, client *updater.Client, stdout, stderr io.Writer) int {
	tasks, err := c.tasks(client)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	shown := newProgress(stderr, len(tasks))
	stop := shown.show()
	var running sync.WaitGroup
	slots := make(chan struct{}, c.parallel)
	for i, t := range tasks {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			options := updater.FileOptions{
				Progress: shown.of(i), SkipHash: c.noHash, IfChanged: true, Check: c.format(),
				AcceptUnverified: c.acceptUnverified, Wait: c.waitOptions(shown.say),
			}
			t.file, t.err = t.client.DownloadFile(ctx, c.job, t.path, options)
			shown.finish(i)
		})
	}
	running.Wait()
	stop()
	code := report(ctx, tasks, stderr)
	if code == target.ExitInterrupted {
		fmt.Fprintf(stderr, "after %s; %s\n", shown.now().amount(), again)
	}
	if code == 0 && c.read != "" {
		return fail(ctx, stderr, c.printFile(tasks[0].path, stdout))
	}
	return code
}

// format refuses a result that is not of the format to be read.
func (c *config) format() func(*io.SectionReader, http.Header) error {
	if c.read == "" {
		return nil
	}
	return func(content *io.SectionReader, _ http.Header) error {
		return formats[c.read](newBounded(content), func(row) error { return nil })
	}
}

// report tells what came of each task, and returns the worst exit code.
func report(ctx context.Context, tasks []*task, stderr io.Writer) int {
	var failures []error
	for _, t := range tasks {
		switch {
		case t.err == nil:
			verb := "wrote"
			if t.file.Unchanged {
				verb = "unchanged"
			}
			fmt.Fprintf(stderr, "%s %s: %s\n", verb, target.Path(t.path), summary(t.file))
		case len(tasks) == 1:
			failures = append(failures, t.err)
		default:
			failures = append(failures, target.Errorf("%s: %w", target.Path(t.path), t.err))
		}
	}
	return fail(ctx, stderr, failures...)
}

func summary(f *updater.File) string {
	text := humanize.IBytes(uint64(f.Size))
	if f.ContentType != "" {
		text += ", " + target.Line(f.ContentType)
	}
	if f.Attempts > 1 {
		text += fmt.Sprintf(", %d requests", f.Attempts)
	}
	if f.ResumedBytes > 0 {
		text += fmt.Sprintf(", %s kept from an earlier run", humanize.IBytes(uint64(f.ResumedBytes)))
	}
	if f.SHA256 != "" {
		text += ", SHA-256 " + f.SHA256
	}
	return text
}

func (c *config) printFile(path string, stdout io.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return printRows(c.read, file, stdout)
}
