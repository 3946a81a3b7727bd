package scale

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// TestBulkKeepsToItsLimit: a bulk lookup uses its limit up and never exceeds it,
// repetitions included, by the service's own record. If the service fails a fifth of the
// requests, what is in flight is lower than the limit until it is clear that this is chance.
func TestBulkKeepsToItsLimit(t *testing.T) {
	const seconds = 3
	for _, test := range []struct {
		limit, burst int
		faults       bool
		least        float64 // of the limit
	}{{200, 1, false, 0.98}, {200, 20, false, 0.98}, {200, 1, true, 0.65}} {
		name := fmt.Sprintf("%d a second, burst %d, faults %v", test.limit, test.burst, test.faults)
		synctest.Test(t, func(t *testing.T) {
			engine := sandbox.New()
			engine.SetLookup(sandbox.SyntheticCard)
			if test.faults { // every fifth answer
				for i := range 2 * test.limit * seconds {
					fault := sandbox.Fault{HeaderDelay: 20 * time.Millisecond}
					if i%5 == 0 {
						fault.Status = http.StatusServiceUnavailable
					}
					engine.Script(sandbox.Bins, fault)
				}
			}
			server := engine.Start(sandbox.Bins)
			defer server.Close()
			client, err := bins.NewClient(sandbox.BaseURL, bins.StaticToken("key"),
				bins.WithHTTPClient(&http.Client{Transport: server.Transport()}),
				bins.WithRateLimit(rate.Limit(test.limit), test.burst), bins.WithMaxRetries(10))
			if err != nil {
				t.Fatal(err)
			}
			cards := func(yield func(string) bool) {
				for i := range test.limit * seconds * bins.MaxCards {
					if !yield(fmt.Sprintf("4%08d", i)) {
						return
					}
				}
			}
			// In order, a request that fails several times in a row would hold up the others.
			for r, err := range client.LookupAll(t.Context(), cards, bins.BulkOptions{Concurrency: 32, Unordered: test.faults}) {
				if err != nil || r.Err != nil {
					t.Fatalf("%s: %v, %v", name, r, err)
				}
			}

			requests := engine.Requests(sandbox.Bins)
			// The last tenth may wait to be repeated, with nothing left to send meanwhile.
			busy := requests[:9*len(requests)/10]
			took := busy[len(busy)-1].Time.Sub(busy[0].Time)
			used := float64(len(busy)-test.burst) / (float64(test.limit) * took.Seconds())
			most := 0
			for from, to := 0, 0; to < len(requests); to++ {
				for requests[to].Time.Sub(requests[from].Time) >= time.Second {
					from++
				}
				most = max(most, to-from+1)
			}
			t.Logf("%s: %d requests in %v, %.1f %% of the limit, at most %d in a second",
				name, len(busy), took, 100*used, most)
			if used < test.least || most > test.limit+test.burst {
				t.Errorf("%s: %.1f %% of the limit used, at most %d in a second", name, 100*used, most)
			}
		})
	}
}
