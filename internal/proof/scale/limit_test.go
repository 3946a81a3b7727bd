package scale

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// TestBulkKeepsToItsLimit: a bulk lookup uses its limit up and never exceeds it,
// by the service's own record.
func TestBulkKeepsToItsLimit(t *testing.T) {
	testkit.Long(t)
	const seconds = 3
	for _, test := range []struct{ limit, burst int }{{100, 1}, {100, 20}} {
		name := fmt.Sprintf("%d a second, burst %d", test.limit, test.burst)
		synctest.Test(t, func(t *testing.T) {
			engine := sandbox.New()
			engine.SetLookup(sandbox.SyntheticCard)
			server := engine.Start(sandbox.Bins)
			defer server.Close()
			client, err := bins.NewClient(sandbox.BaseURL, bins.StaticToken("key"),
				bins.WithHTTPClient(&http.Client{Transport: server.Transport}),
				bins.WithRateLimit(rate.Limit(test.limit), test.burst))
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
			for r, err := range client.LookupAll(t.Context(), cards, bins.BulkOptions{Concurrency: 32}) {
				if err != nil || r.Err != nil {
					t.Fatalf("%s: %v, %v", name, r, err)
				}
			}

			requests := engine.Requests(sandbox.Bins)
			took := requests[len(requests)-1].Time.Sub(requests[0].Time)
			used := float64(len(requests)-test.burst) / (float64(test.limit) * took.Seconds())
			most := 0
			for from, to := 0, 0; to < len(requests); to++ {
				for requests[to].Time.Sub(requests[from].Time) >= time.Second {
					from++
				}
				most = max(most, to-from+1)
			}
			t.Logf("%s: %d requests in %v, %.1f %% of the limit, at most %d in a second",
				name, len(requests), took, 100*used, most)
			if used < 0.98 || most > test.limit+test.burst {
				t.Errorf("%s: %.1f %% of the limit used, at most %d in a second", name, 100*used, most)
			}
		})
	}
}
