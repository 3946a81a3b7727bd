// Download fetches the result of an account updater job into a file. Run again after an
// interruption it continues where it ended, and run again after that it fetches only what
// is new. The file is replaced once the result is complete, and only you can read it.
//
//	go run ./examples/download -sandbox 42 result.csv
//
// CARDDATA_UPDATER_URL, CARDDATA_ACCESS_TOKEN and CARDDATA_MERCHANT_ID name the service,
// the credential and the merchant. Exit code: 0 complete, 1 failed, 2 usage or
// environment, 3 not complete, but the same command can succeed later.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	_ "github.com/carddata/carddata-go/internal/sandbox/demo" // the flag -sandbox: delete this line
	"github.com/carddata/carddata-go/updater"
)

func main() {
	flag.Parse()
	if flag.NArg() != 2 {
		exit(2, "usage: download JOB FILE")
	}
	client, err := updater.NewClient(os.Getenv("CARDDATA_UPDATER_URL"), os.Getenv("CARDDATA_MERCHANT_ID"),
		updater.StaticToken(os.Getenv("CARDDATA_ACCESS_TOKEN")))
	if err != nil {
		exit(2, "check CARDDATA_UPDATER_URL, CARDDATA_MERCHANT_ID and CARDDATA_ACCESS_TOKEN: ", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 6*time.Hour)
	defer cancel()
	file, err := client.DownloadFile(ctx, flag.Arg(0), flag.Arg(1), updater.FileOptions{IfChanged: true})
	var failed *updater.Error
	switch {
	case err == nil && file.Unchanged:
		fmt.Println("unchanged:", file.Size, "bytes, SHA-256", file.SHA256)
	case err == nil:
		fmt.Println("complete:", file.Size, "bytes, SHA-256", file.SHA256)
	case errors.Is(err, updater.ErrInvalidArgument):
		exit(2, err)
	case errors.As(err, &failed) && failed.Retryable(), ctx.Err() != nil:
		exit(3, err, "\nrun the same command again: it continues, if the service allows")
	default:
		exit(1, err)
	}
}

func exit(code int, message ...any) {
	fmt.Fprint(os.Stderr, append(message, "\n")...)
	os.Exit(code)
}
