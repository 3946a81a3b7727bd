package updatertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/exampletest"
	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

func ExampleServer() {
	var t exampletest.T // in a test, its own t
	defer t.End()

	fake := updatertest.NewServer(&t)
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

// A job becomes ready: the first answers are what you know of yours, and inside
// testing/synctest the hours between them pass at once.
func ExampleServer_Script() {
	var t exampletest.T // in a test, its own t
	defer t.End()

	fake := updatertest.NewServer(&t)
	fake.SetJob("7", "text/plain", []byte("the whole content"))
	notReady := updatertest.Fault{Status: 409, Body: `{"code":"job_not_ready"}`}
	fake.Script(notReady, notReady)

	download, err := fake.Client().DownloadWhenReady(context.Background(), "7", updater.WaitOptions{
		NotReady: func(e *updater.Error) bool { return e.Code == "job_not_ready" },
		Interval: time.Millisecond,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer download.Close()
	content, err := io.ReadAll(download)
	fmt.Printf("%s, after %d requests, %v\n", content, len(fake.Requests()), err)
	// Output:
	// the whole content, after 3 requests, <nil>
}

// The content changes in the middle: the link breaks, and when the rest is asked
// for, there is another version. A file is begun anew; a stream ends with ErrChanged.
func ExampleServer_SetJobContent() {
	var t exampletest.T // in a test, its own t
	defer t.End()

	fake := updatertest.NewServer(&t)
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

// Results of any size cost no memory, and links can be as bad as they are: here each
// answer breaks after 10 MB.
func ExampleServer_ScriptFunc() {
	var t exampletest.T // in a test, its own t
	defer t.End()

	fake := updatertest.NewServer(&t)
	fake.SetJobContent("7", updatertest.JobContent{Content: updatertest.CSV(64 << 20), ContentType: "text/csv"})
	fake.ScriptFunc(func(updatertest.Request) updatertest.Fault {
		return updatertest.Fault{Truncate: 10_000_000}
	})

	request, err := http.NewRequest("GET", fake.URL()+"/updater/inquiries/jobs/7/download", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	request.Header = http.Header{"Authorization": {"Bearer k"}, "X-Merchant-Id": {"m"}, "Range": {"bytes=5000000-"}}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	fmt.Println(response.Header.Get("Content-Range"), "broken:", err != nil)
	fmt.Println(fake.Requests()[0].Sent, "bytes sent")
	// Output:
	// bytes 5000000-67108863/67108864 broken: true
	// 10000000 bytes sent
}
