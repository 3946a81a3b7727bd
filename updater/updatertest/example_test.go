package updatertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"

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
	for range 2 {
		download, err := client.Download(context.Background(), "7")
		if err != nil {
			fmt.Println(err)
			return
		}
		content, err := io.ReadAll(download)
		download.Close()
		fmt.Printf("%s, cut off: %v\n", content, errors.Is(err, updater.ErrBadResponse))
	}
	// Output:
	// the whole, cut off: true
	// the whole content, cut off: false
}
