package updater_test

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// One job for many merchants, with one token for all of them. When it is revoked in the
// middle, the service refuses it with 401, and the call fetches another one and succeeds.
func ExampleCachedToken() {
	fake := updatertest.Start() // stands in for the service
	defer fake.Close()

	fetched := 0
	source := updater.CachedToken(func(ctx context.Context) (string, time.Time, error) {
		fetched++ // ask your identity provider here, with ctx
		return fmt.Sprint("token-", fetched), time.Now().Add(time.Hour), nil
	})
	client, err := updater.NewClient(fake.URL(), "", source)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, merchant := range []string{"merchant_1", "merchant_2", "merchant_3"} {
		if i == 1 {
			fake.RevokeToken("token-1")
		}
		of, err := client.ForMerchant(merchant)
		if err != nil {
			fmt.Println(err)
			return
		}
		download, err := of.Download(context.Background(), "42")
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = io.Copy(io.Discard, download)
		download.Close()
		fmt.Println(merchant, "error:", err, "tokens fetched:", fetched)
	}
	// Output:
	// merchant_1 error: <nil> tokens fetched: 1
	// merchant_2 error: <nil> tokens fetched: 2
	// merchant_3 error: <nil> tokens fetched: 2
}
