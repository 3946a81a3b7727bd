package updatertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

func ExampleServer() {
	fake := updatertest.NewServer(nil) // in a test: updatertest.NewServer(t)
	defer fake.Close()
	fake.SetJob("7", updatertest.Job{Content: strings.NewReader("the whole content"), ContentType: "text/plain"})
	fake.Script(updatertest.Fault{Truncate: 9})

	client := fake.Client() // or your service, made with fake.HTTPClient() or fake.URL()
	download, err := client.Download(context.Background(), "7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer download.Close()
	content, err := io.ReadAll(download)
	fmt.Printf("%s, %d resumed, %v\n", content, download.Resumes, err)
	// Output:
	// the whole content, 1 resumed, <nil>
}

// The content changes during the download: the connection breaks, and by the time the
// rest is requested there is another version. DownloadFile starts over; a stream ends
// with ErrChanged.
func ExampleServer_SetJob() {
	fake := updatertest.NewServer(nil) // in a test: updatertest.NewServer(t)
	defer fake.Close()
	fake.SetJob("7", updatertest.Job{Content: strings.NewReader("old content"), ContentType: "text/plain"})
	fake.Script(updatertest.Fault{Truncate: 4})

	download, err := fake.Client().Download(context.Background(), "7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer download.Close()
	fake.SetJob("7", updatertest.Job{Content: strings.NewReader("new content"), ContentType: "text/plain"})
	content, err := io.ReadAll(download)
	fmt.Printf("%q, changed: %v\n", content, errors.Is(err, updater.ErrChanged))
	// Output:
	// "old ", changed: true
}

// Content of any size takes no memory, and connections can be as bad as you like: here
// each response breaks after 10 MB.
func ExampleCSV() {
	fake := updatertest.NewServer(nil) // in a test: updatertest.NewServer(t)
	defer fake.Close()
	fake.SetJob("7", updatertest.Job{Content: updatertest.CSV(64_000_000), ContentType: "text/csv"})
	fake.Script(slices.Repeat([]updatertest.Fault{{Truncate: 10_000_000}}, 6)...)

	client := fake.Client(updater.WithRetryWait(0, 0)) // in production: leave it out
	download, err := client.Download(context.Background(), "7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer download.Close()
	n, err := io.Copy(io.Discard, download)
	fmt.Println(n, "bytes,", download.Resumes, "resumed,", err)
	fmt.Println(fake.Requests()[0].Sent, "bytes in the first response")
	// Output:
	// 64000000 bytes, 6 resumed, <nil>
	// 10000000 bytes in the first response
}
