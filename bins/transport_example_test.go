package bins_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
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

// Your round tripper sees every attempt, and all guarantees stay.
func ExampleWithTransport() {
	fake := binstest.Start() // stands in for the service
	defer fake.Close()
	fake.Script(binstest.Fault{Status: http.StatusServiceUnavailable})

	var attempts *meter
	client, err := bins.NewClient(fake.URL(), bins.StaticToken("my-api-key"),
		bins.WithTransport(func(base http.RoundTripper) http.RoundTripper {
			attempts = &meter{base: base}
			return attempts
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Lookup(context.Background(), &bins.LookupRequest{Cards: bins.Cards("45717360")})
	fmt.Println(err, attempts.statuses)
	// Output:
	// <nil> [503 200]
}
