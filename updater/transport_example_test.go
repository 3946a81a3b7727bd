package updater_test

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// A meter counts requests, around the library's own transport.
type meter struct {
	base     http.RoundTripper
	statuses []int
}

func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := m.base.RoundTrip(r)
	if err == nil {
		m.statuses = append(m.statuses, resp.StatusCode)
	}
	return resp, err
}

// Your round tripper sees every request, those that resume a download included, and
// all guarantees stay.
func ExampleWithTransport() {
	fake := updatertest.Start() // stands in for the service
	defer fake.Close()
	fake.SetJob("7", "text/plain", []byte("the whole content"))
	fake.Script(updatertest.Fault{Truncate: 9})

	var requests *meter
	client, err := updater.NewClient(fake.URL(), "merchant_1", updater.StaticToken("my-access-token"),
		updater.WithTransport(func(base http.RoundTripper) http.RoundTripper {
			requests = &meter{base: base}
			return requests
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	download, err := client.Download(context.Background(), "7")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer download.Close()
	content, err := io.ReadAll(download)
	fmt.Printf("%s, %v, %d\n", content, err, requests.statuses)
	// Output:
	// the whole content, <nil>, [200 206]
}
