package bins_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
)

// A token is fetched once and kept. When it is revoked before its time, the service
// refuses it with 401, and the call fetches another one and succeeds.
func ExampleCachedToken() {
	fake := binstest.NewServer(nil) // stands in for the service
	defer fake.Close()

	fetched := 0
	source := bins.CachedToken(func(ctx context.Context) (string, time.Time, error) {
		fetched++ // ask your identity provider here, with ctx
		return fmt.Sprint("token-", fetched), time.Now().Add(time.Hour), nil
	})
	client, err := bins.NewClient(fake.URL(), source)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 3 {
		if i == 2 {
			fake.RevokeToken("token-1")
		}
		_, err := client.Lookup(context.Background(), &bins.LookupRequest{Cards: bins.Cards("45717360")})
		fmt.Println("error:", err, "tokens fetched:", fetched)
	}
	// Output:
	// error: <nil> tokens fetched: 1
	// error: <nil> tokens fetched: 1
	// error: <nil> tokens fetched: 2
}

// Only the first eight digits of a card number leave the process. Cards that share them
// share one result.
func ExampleBulkOptions_prefixLength() {
	fake := binstest.NewServer(nil) // stands in for the service
	defer fake.Close()

	cards := slices.Values([]string{"4571736012345678", "4571736087654321"})
	o := bins.BulkOptions{PrefixLength: 8}
	for result, err := range fake.Client().LookupAll(context.Background(), cards, o) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.Input, bins.NewIdentifier(result.Result.BIN), result.Reused)
	}
	fmt.Println("sent:", fake.Cards())
	// Output:
	// 457173******5678 45717360 false
	// 457173******4321 45717360 true
	// sent: [45717360]
}

// The service is down. A card that was looked up before is still served, and marked as
// stale.
func ExampleCacheOptions_staleFor() {
	fake := binstest.NewServer(nil) // stands in for the service
	defer fake.Close()
	memory := bins.NewMemoryCache(bins.CacheOptions{
		StaleFor: 24 * time.Hour,   // an outage of a day is no problem for a card that is known
		TTL:      time.Millisecond, // the example does not wait for 24 hours, the default
	})
	loader, err := bins.NewLoader(fake.Client(), bins.LoaderOptions{Memory: memory, PrefixLength: 8})
	if err != nil {
		fmt.Println(err)
		return
	}

	result, err := loader.Load(context.Background(), "4571736012345678")
	fmt.Println("service up:", bins.NewIdentifier(result.BIN), "stale:", result.Stale, "error:", err)

	time.Sleep(20 * time.Millisecond) // the TTL ends
	fake.Script(slices.Repeat([]binstest.Fault{{Status: http.StatusServiceUnavailable}}, 10)...)
	result, err = loader.Load(context.Background(), "4571736012345678")
	fmt.Println("service down:", bins.NewIdentifier(result.BIN), "stale:", result.Stale, "error:", err)
	// Output:
	// service up: 45717360 stale: false error: <nil>
	// service down: 45717360 stale: true error: <nil>
}
