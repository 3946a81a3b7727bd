package bins_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
)

// Any number of cards, from anything that yields them. Each is sent once.
func ExampleClient_LookupAll() {
	fake := binstest.NewServer(nil) // stands in for the service
	defer fake.Close()
	client := fake.Client()

	cards := slices.Values([]string{"45717360", "411111", "45717360", "999999", "411111"})
	for result, err := range client.LookupAll(context.Background(), cards, bins.BulkOptions{}) {
		if err != nil {
			fmt.Println(err) // the lookup has ended early; this comes once, and last
			return
		}
		card, err := result.Card()
		if err != nil { // the card is unknown, or has no result
			fmt.Println(result.Index, result.Input, err)
			continue
		}
		fmt.Println(result.Index, result.Input, card.CardBrand, card.Country.Alpha2)
	}
	fmt.Println("cards sent:", len(fake.Cards()))
	// Output:
	// 0 45717360 VISA DK
	// 1 411111 VISA US
	// 2 45717360 VISA DK
	// 3 999999 bins: the service sent an error for this card, Message has its text
	// 4 411111 VISA US
	// cards sent: 3
}

// A lookup that has ended early, or was killed, goes on behind the last result that was stored. Here the program is told
// to stop after 50 results. The first request of the next run asks for the 51st card.
func ExampleClient_LookupAll_resume() {
	fake := binstest.NewServer(nil) // stands in for the service
	defer fake.Close()

	cards := make([]string, 120)
	for i := range cards {
		cards[i] = fmt.Sprint(45717360 + i)
	}
	var stored []bins.BulkResult // in production: a table or a file, in input order
	run := func(ctx context.Context, stop func()) error {
		suspended := false
		rest := slices.Values(cards[len(stored):])
		o := bins.BulkOptions{Concurrency: 1} // for this example only
		for result, err := range fake.Client().LookupAll(ctx, rest, o) {
			if err != nil {
				return err
			}
			if errors.Is(result.Err, bins.ErrSuspended) {
				suspended = true
			}
			if !suspended {
				stored = append(stored, result)
			}
			if len(stored) == 50 {
				stop()
			}
		}
		return nil
	}
	for range 2 {
		ctx, stop := context.WithCancel(context.Background()) // in production: signal.NotifyContext
		err := run(ctx, stop)
		fmt.Println(len(stored), "results, stopped:", errors.Is(err, context.Canceled))
		stop()
	}
	fmt.Println("cards sent:", len(fake.Cards()))
	// Output:
	// 50 results, stopped: true
	// 120 results, stopped: false
	// cards sent: 120
}

// Each result leads back to the row of a file that its card came from. The map holds only the
// rows without a result, at most 32,768.
func ExampleBulkResult() {
	fake := binstest.NewServer(nil) // stands in for the service
	defer fake.Close()

	file := csv.NewReader(strings.NewReader("A-1,45717360\nA-2,411111\nA-3,45717360\n")) // in production: an os.File
	var fileErr error
	rows := map[int][]string{}
	cards := func(yield func(string) bool) {
		for i := 0; ; i++ {
			row, err := file.Read()
			if err != nil {
				fileErr = err
				return
			}
			rows[i] = row
			if !yield(row[1]) {
				return
			}
		}
	}
	for result, err := range fake.Client().LookupAll(context.Background(), cards, bins.BulkOptions{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		order := rows[result.Index][0]
		delete(rows, result.Index)
		if card, err := result.Card(); err != nil {
			fmt.Println(order, err)
		} else {
			fmt.Println(order, card.Country.Alpha2)
		}
	}
	fmt.Println("whole file:", fileErr == io.EOF)
	// Output:
	// A-1 DK
	// A-2 US
	// A-3 DK
	// whole file: true
}

// A checkout decides in time. Concurrent lookups share a request, the cards of one BIN share a
// result, and a known card is served through an outage of a day. Here prepaid cards are refused.
func ExampleLoader() {
	fake := binstest.NewServer(nil) // stands in for the service
	defer fake.Close()
	client := fake.Client(bins.WithAttemptTimeout(2 * time.Second)) // what the service may take
	loader, err := bins.NewLoader(client, bins.LoaderOptions{
		PrefixLength: 8,
		Memory:       bins.NewMemoryCache(bins.CacheOptions{StaleFor: 24 * time.Hour}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer loader.Close()
	allow := func(number string) bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // in production: your budget, such as 80 ms
		defer cancel()
		result, err := loader.Load(ctx, number)
		if err != nil {
			return true // the service is slow or down: decide without it
		}
		card, err := result.Card()
		if err != nil {
			return true // the card is unknown
		}
		return !card.Prepaid.Or(false)
	}
	for _, number := range []string{"5105101212345678", "5105101287654321", "9999991234567890"} {
		fmt.Println(bins.NewIdentifier(number), "allowed:", allow(number))
	}
	fmt.Println("cards sent:", fake.Cards())
	// Output:
	// 510510******5678 allowed: false
	// 510510******4321 allowed: false
	// 999999******7890 allowed: true
	// cards sent: [51051012 99999912]
}
