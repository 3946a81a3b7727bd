// Download streams the result of an account updater job.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/updater"
)

const usage = `usage: download [-job ID] [-o FILE]

Streams the result of an account updater job to standard output or a file. A
result holds card numbers: a terminal shows them masked, while a pipe or a file
gets every byte as it is.

  -job ID  the inquiry job; 42, which holds invented data, in the
           built-in sandbox
  -o FILE  a new file that only you can read; an existing one is refused, and an
           incomplete one is removed

CARDDATA_UPDATER_URL, CARDDATA_ACCESS_TOKEN and CARDDATA_MERCHANT_ID name the
service, the credential and the merchant. Without all of them, a sandbox answers.

Exit code: 0 complete; 1 failed, and standard output may be incomplete; 2 usage
or configuration; 130 interrupted.
`

var settings = target.Settings{
	URL:      "CARDDATA_UPDATER_URL",
	Required: []string{"CARDDATA_ACCESS_TOKEN", "CARDDATA_MERCHANT_ID"},
}

func main() {
	os.Exit(run(target.Signals(), os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	flags := flag.NewFlagSet("download", flag.ContinueOnError)
	job := flags.String("job", "", "")
	path := flags.String("o", "", "")
	if code, ok := target.Parse(flags, usage, args, stdout, stderr); !ok {
		return code
	}
	if flags.NArg() > 0 {
		return target.Fail(ctx, stderr, target.Usage("download: no arguments besides -job and -o (-h helps)"))
	}
	service, err := target.Open(stderr, env, settings)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	defer service.Close()
	if *job == "" {
		if service.Live() {
			return target.Fail(ctx, stderr, target.Usage("download: -job is missing (-h helps)"))
		}
		*job = "42"
	}
	client, err := updater.NewClient(service.URL, service.Value("CARDDATA_MERCHANT_ID"),
		updater.StaticToken(service.Value("CARDDATA_ACCESS_TOKEN")))
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}

	switch {
	case *path != "":
		err = toFile(ctx, client, *job, *path)
	case target.IsTerminal(stdout):
		masked := &maskWriter{to: stdout}
		err = errors.Join(stream(ctx, client, *job, masked), masked.flush())
	default:
		err = stream(ctx, client, *job, stdout)
	}
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	if *path != "" {
		fmt.Fprintf(stderr, "wrote %s\n", target.Line(*path))
	}
	return 0
}

func stream(ctx context.Context, client *updater.Client, job string, to io.Writer) error {
	download, err := client.Download(ctx, job)
	if err != nil {
		return err
	}
	defer download.Close()
	_, err = io.Copy(to, download)
	return err
}

// toFile creates the file before it sends anything, so that a result is not
// fetched in vain.
func toFile(ctx context.Context, client *updater.Client, job, path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return target.Usage("download: %v", err)
	}
	if err := errors.Join(stream(ctx, client, job, file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
