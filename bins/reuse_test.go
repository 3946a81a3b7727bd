package bins_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/testkit"
)

// TestResponsesAreTheReceivers: buffers are used for one response after another, of
// which none shows in an earlier one.
func TestResponsesAreTheReceivers(t *testing.T) {
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
			t.Errorf("response %d was %s and became %s", n, before[n], after)
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
			if !yield(fmt.Sprintf("4571736%02d", i%bins.MaxCards)) {
				return
			}
		}
	}
	cache := bins.NewMemoryCache(bins.CacheOptions{})
	for range 2 {
		for r, err := range s.client(t).LookupAll(t.Context(), inputs, bins.BulkOptions{Memory: cache}) {
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
