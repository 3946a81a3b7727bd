package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/updater"
)

// print streams the result to standard output.
func (c *config) print(ctx context.Context, client *updater.Client, stdout, stderr io.Writer) error {
	download, err := c.open(ctx, client, stderr)
	if err != nil {
		return err
	}
	defer download.Close()
	switch {
	case !download.Verified && !c.acceptUnverified:
		return updater.ErrUnverified
	case c.read != "":
		return printRows(c.read, download, stdout)
	case target.IsTerminal(stdout):
		masked := &maskWriter{to: stdout}
		_, err := io.Copy(masked, download)
		return errors.Join(err, masked.flush())
	}
	_, err = io.Copy(stdout, download)
	return err
}

func (c *config) open(ctx context.Context, client *updater.Client, stderr io.Writer) (*updater.Download, error) {
	if len(c.notReady) == 0 {
		return client.Download(ctx, c.job)
	}
	return client.DownloadWhenReady(ctx, c.job, c.waitOptions(func(line string) { fmt.Fprintln(stderr, line) }))
}

func printRows(format string, content io.Reader, stdout io.Writer) error {
	out, rows := bufio.NewWriter(stdout), 0
	err := formats[format](newBounded(content), func(row row) error {
		rows++
		return printRow(out, row)
	})
	if err != nil {
		err = fmt.Errorf("after %s rows: %w", humanize.Comma(int64(rows)), err)
	}
	return errors.Join(err, out.Flush())
}
