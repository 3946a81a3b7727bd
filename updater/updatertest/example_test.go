package updatertest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/carddata/carddata-go/internal/exampletest"
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
