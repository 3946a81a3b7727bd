package updatertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

func ExampleServer() {
	fake := updatertest.Start() // in a test: updatertest.NewServer(t)
	defer fake.Close()
	fake.SetJob("7", "text/plain", []byte("the whole content"))
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
func ExampleServer_ScriptFunc() {
	fake := updatertest.Start() // in a test: updatertest.NewServer(t)
	defer fake.Close()
	fake.SetJob("7", "text/plain", []byte("old content"))
	fake.ScriptFunc(func(r updatertest.Request) updatertest.Fault {
		if r.Header.Get("Range") == "" {
			return updatertest.Fault{Truncate: 4}
		}
		fake.SetJob("7", "text/plain", []byte("new content"))
		return updatertest.Fault{}
	})

	download, err := fake.Client().Download(context.Background(), "7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer download.Close()
	content, err := io.ReadAll(download)
	fmt.Printf("%q, changed: %v\n", content, errors.Is(err, updater.ErrChanged))
	// Output:
	// "old ", changed: true
}

// Content of any size takes no memory, and connections can be as bad as you like: here
// each response breaks after 10 MB.
func ExampleServer_SetJobContent() {
	fake := updatertest.Start() // in a test: updatertest.NewServer(t)
	defer fake.Close()
	fake.SetJobContent("7", updatertest.JobContent{Content: updatertest.CSV(64_000_000), ContentType: "text/csv"})
	fake.ScriptFunc(func(updatertest.Request) updatertest.Fault {
		return updatertest.Fault{Truncate: 10_000_000}
	})

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
