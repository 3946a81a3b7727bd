package updater_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// The connection breaks twice, and the process is interrupted. In the end the file is there,
// whole. Only one byte was fetched twice: the last one that was kept.
func ExampleClient_DownloadFile() {
	fake := updatertest.NewServer(nil) // stands in for the service
	defer fake.Close()
	fake.SetJob("7", updatertest.Job{Content: updatertest.CSV(3_000_000), ContentType: "text/csv"})
	fake.Script(updatertest.Fault{Truncate: 1_000_000}, updatertest.Fault{Truncate: 500_000})
	client := fake.Client()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "result.csv")

	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	_, err = client.DownloadFile(ctx, "7", path, updater.FileOptions{Progress: func(p updater.FileProgress) {
		if p.Bytes > 1_800_000 {
			interrupt()
		}
	}})
	_, missing := os.Stat(path)
	fmt.Println(errors.Is(err, context.Canceled), errors.Is(missing, os.ErrNotExist))

	file, err := client.DownloadFile(context.Background(), "7", path, updater.FileOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Size, info.Size(), file.ContentType, file.ResumedBytes > 1_800_000)
	fmt.Println("SHA-256", file.SHA256)
	// Output:
	// true true
	// 3000000 3000000 text/csv true
	// SHA-256 484a5eea674f01ea8f58f8236f1480ba7a1da1d386f03691ff45bed82499c695
}

// A nightly job fetches nothing twice: the second call asks the service whether the
// content has changed.
func ExampleFileOptions_ifChanged() {
	fake := updatertest.NewServer(nil) // stands in for the service
	defer fake.Close()
	fake.SetJob("7", updatertest.Job{Content: updatertest.CSV(3_000_000)})
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for range 2 {
		file, err := fake.Client().DownloadFile(context.Background(), "7", filepath.Join(dir, "result.csv"), updater.FileOptions{IfChanged: true})
		if err != nil {
			fmt.Println(err)
			return
		}
		sent := fake.Requests()[len(fake.Requests())-1].Sent
		fmt.Println(file.Size, "bytes,", sent, "sent, unchanged:", file.Unchanged)
	}
	// Output:
	// 3000000 bytes, 3000000 sent, unchanged: false
	// 3000000 bytes, 0 sent, unchanged: true
}

// The content is checked before it replaces the file. Here a proxy sends its own page
// instead of the result, and yesterday's result stays.
func ExampleFileOptions_check() {
	fake := updatertest.NewServer(nil) // stands in for the service
	defer fake.Close()
	fake.SetJob("7", updatertest.Job{Content: strings.NewReader("Please log in."), ContentType: "text/plain"})
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "result.csv")
	if err := os.WriteFile(path, []byte("yesterday's"), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	noColumns := errors.New("the first line has no columns")
	_, err = fake.Client().DownloadFile(context.Background(), "7", path, updater.FileOptions{
		Check: func(content *io.SectionReader, header http.Header) error {
			first, _, err := bufio.NewReader(content).ReadLine()
			if err != nil || !bytes.Contains(first, []byte(",")) {
				return noColumns
			}
			return nil
		},
	})
	failure, _ := errors.AsType[*updater.Error](err)
	fmt.Println(errors.Is(err, noColumns), failure.Condition())
	result, err := os.ReadFile(path)
	fmt.Println(string(result), err)
	// Output:
	// true refused
	// yesterday's <nil>
}

// The response for a job that is not ready is not documented. A 202 is known to mean that;
// suppose you know that the code job_not_ready does, too.
func ExampleWithNotReady() {
	fake := updatertest.NewServer(nil) // stands in for the service
	defer fake.Close()
	fake.Script(updatertest.Fault{Status: 202}, updatertest.Fault{Status: 409, Body: new(`{"code":"job_not_ready"}`)})

	client := fake.Client(
		updater.WithNotReady(func(e *updater.Error) bool { return e.Code == "job_not_ready" }),
		updater.WithWait(time.Millisecond, time.Hour)) // in production: 0, for 30 seconds
	download, err := client.Download(context.Background(), "42")
	switch {
	case errors.Is(err, updater.ErrNotReady):
		fmt.Println("later")
		return
	case err != nil:
		fmt.Println(err)
		return
	}
	defer download.Close()
	fmt.Println(download.ContentType, "after", download.Attempts, "requests")
	// Output:
	// text/csv; charset=utf-8 after 3 requests
}
