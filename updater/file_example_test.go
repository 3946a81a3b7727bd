package updater_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/carddata/carddata-go/internal/exampletest"
	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// The link breaks twice, and the process is interrupted. The file is there in the
// end, whole and private, and no byte was fetched a second time but the last one
// that was kept, by which the service confirms that the content is still the same.
func ExampleClient_DownloadFile() {
	var t exampletest.T // in a test, its own t
	defer t.End()
	fake := updatertest.NewServer(&t) // stands in for the service
	fake.SetJobContent("7", updatertest.JobContent{Content: updatertest.CSV(3_000_000), ContentType: "text/csv"})
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
	fmt.Println(file.Size, info.Size(), info.Mode(), file.ContentType, file.ResumedBytes > 1_800_000)
	fmt.Println("SHA-256", file.SHA256)
	// Output:
	// true true
	// 3000000 3000000 -rw------- text/csv true
	// SHA-256 484a5eea674f01ea8f58f8236f1480ba7a1da1d386f03691ff45bed82499c695
}

// The service does not document what a job that is not ready answers. Suppose you
// know that yours answers 202, or the code job_not_ready.
func ExampleClient_DownloadWhenReady() {
	var t exampletest.T // in a test, its own t
	defer t.End()
	fake := updatertest.NewServer(&t) // stands in for the service
	fake.Script(updatertest.Fault{Status: 202}, updatertest.Fault{Status: 409, Body: `{"code":"job_not_ready"}`})

	download, err := fake.Client().DownloadWhenReady(context.Background(), "42", updater.WaitOptions{
		NotReady: func(e *updater.Error) bool { return e.StatusCode == 202 || e.Code == "job_not_ready" },
		Interval: time.Millisecond, // in earnest: leave it out
		MaxWait:  time.Hour,
	})
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
