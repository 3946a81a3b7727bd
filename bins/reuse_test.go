package bins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/testkit"
)

// TestAnswersAreTheReceivers: buffers are used for one answer after another, of
// which none shows in an earlier one.
func TestAnswersAreTheReceivers(t *testing.T) {
	body := func(n int) string {
		return fmt.Sprintf(`{"cards":[{"bin":"41111%d","error":"e%d","unknown":%d,"data":{"card":{"bin_min":"%d","pan_or_token":"t%d",`+
			`"networkfees":{"fee":"%d"},"additional_card_brands":[{"card_brand":"b%d"}]}}}]}`, n, n, n, n, n, n, n)
	}
	text := func(resp *bins.LookupResponse) string {
		encoded, err := json.Marshal(resp)
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded) + string(resp.Cards[0].Raw)
	}
	var responses []*bins.LookupResponse
	var before []string
	for n := range 5 {
		mock := testkit.NewMock("POST", testkit.Base+path, testkit.Answer(200, body(n)))
		resp, err := newClient(t, mock).Lookup(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		responses, before = append(responses, resp), append(before, text(resp))
	}
	for n, resp := range responses {
		if after := text(resp); after != before[n] {
			t.Errorf("answer %d was %s and became %s", n, before[n], after)
		}
	}
}

// TestResultsAreTheReceivers: whoever writes to a result, changes no other.
func TestResultsAreTheReceivers(t *testing.T) {
	s := &service{answer: func(card string) (map[string]any, bool) {
		return map[string]any{"bin": card, "data": map[string]any{"card": map[string]any{
			"networkfees": map[string]any{"fee": 1}, "additional_card_brands": []any{map[string]any{"card_brand": "b"}},
		}}}, true
	}}
	inputs := func(yield func(string) bool) {
		for i := range 3 * bins.MaxCards {
			if !yield(fmt.Sprint("4571736", i%bins.MaxCards)) {
				return
			}
		}
	}
	cache := bins.NewMemoryCache(bins.CacheOptions{})
	for range 2 {
		for r, err := range s.client(t).LookupAll(t.Context(), inputs, bins.BulkOptions{Cache: cache}) {
			if err != nil {
				t.Fatal(err)
			}
			card := r.Result.Data.Card
			if string(card.NetworkFees) != `{"fee":1}` || card.AdditionalCardBrands[0].CardBrand != "b" {
				t.Fatalf("result %d has %s and %s", r.Index, card.NetworkFees, card.AdditionalCardBrands[0].CardBrand)
			}
			copy(card.NetworkFees, "xxxxxxxxx")
			card.AdditionalCardBrands[0].CardBrand = "x"
		}
	}
	if n := s.requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestSharedResults: all have the same data out of memory, at no cost, and others
// copies of their own.
func TestSharedResults(t *testing.T) {
	s := &service{}
	client, cache := s.client(t), bins.NewMemoryCache(bins.CacheOptions{})
	const input = "45717360"
	load := func(shared bool) func() bins.Result {
		loader, err := bins.NewLoader(client, bins.LoaderOptions{Cache: cache, Window: -1, Shared: shared})
		if err != nil {
			t.Fatal(err)
		}
		return func() bins.Result {
			r, err := loader.Load(context.Background(), input)
			if err != nil || r.BIN != input || r.Data.Card.CardBrand != "of "+input {
				t.Fatal(r, err)
			}
			return r
		}
	}
	shared, own := load(true), load(false)
	first := shared() // brought by its own request
	if a, b := shared(), shared(); a.Data != b.Data || a.Data == first.Data {
		t.Error("data out of memory is not shared, or what its first receiver has is")
	}
	if a, b := own(), own(); a.Data == b.Data || a.Data == shared().Data {
		t.Error("a loader shares data although nobody asked it to")
	}
	if n := testing.AllocsPerRun(100, func() { shared() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if n := s.requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}
