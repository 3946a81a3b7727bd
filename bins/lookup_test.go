package bins_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
)

func manyCards(n int) []bins.LookupCard {
	cards := make([]bins.LookupCard, n)
	for i := range cards {
		cards[i].Card = bins.NewIdentifier(fmt.Sprintf("4571%04d", i))
	}
	return cards
}

func TestLookupRequestOnTheWire(t *testing.T) {
	tests := []struct {
		name string
		req  bins.LookupRequest
		body string
	}{
		{"one card", bins.LookupRequest{Cards: bins.Cards("45717360")}, `{"cards":[{"card":"45717360"}]}`},
		{"leading zeros and order", bins.LookupRequest{Cards: bins.Cards("004111", "424242", "004111")},
			`{"cards":[{"card":"004111"},{"card":"424242"},{"card":"004111"}]}`},
		{"a token of any form", bins.LookupRequest{Cards: bins.Cards(`tok "é" \1`)}, `{"cards":[{"card":"tok \"é\" \\1"}]}`},
		// Whether card is required is not documented, so the service judges.
		{"no card in an item", bins.LookupRequest{Cards: bins.Cards("")}, `{"cards":[{}]}`},
		{"enhanced", bins.LookupRequest{Cards: bins.Cards("411111"), Enhanced: new(true)}, `{"cards":[{"card":"411111"}],"enhanced":true}`},
		{"not enhanced", bins.LookupRequest{Cards: bins.Cards("411111"), Enhanced: new(false)}, `{"cards":[{"card":"411111"}],"enhanced":false}`},
		{"raw is ours alone", bins.LookupRequest{Cards: bins.Cards("411111"), KeepRaw: true}, `{"cards":[{"card":"411111"}]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			mock := newAnswer(200, `{"cards":[]}`)
			if _, err := newClient(t, mock).Lookup(t.Context(), &test.req); err != nil {
				t.Fatal(err)
			}
			got := mock.Requests()
			if len(got) != 1 || got[0].Method != "POST" || got[0].URL != "https://service.example/bins/multiple" || got[0].Body != test.body {
				t.Fatalf("sent %+v", got)
			}
			header := got[0].Header
			if names := slices.Sorted(maps.Keys(header)); !slices.Equal(names, []string{"Accept", "Authorization", "Content-Type", "User-Agent"}) {
				t.Errorf("sent the headers %q", names)
			}
			if header.Get("Authorization") != "Bearer key-1" || header.Get("Content-Type") != "application/json" ||
				header.Get("Accept") != "application/json" || !strings.HasPrefix(header.Get("User-Agent"), "carddata-go/") {
				t.Errorf("sent the header %v", header)
			}
		})
	}
}

func TestLookupTakes1To50Cards(t *testing.T) {
	for n, sent := range map[int]bool{0: false, 1: true, 50: true, 51: false, 1000: false} {
		mock := newAnswer(200, `{"cards":[]}`)
		resp, err := newClient(t, mock).Lookup(t.Context(), &bins.LookupRequest{Cards: manyCards(n)})
		if sent {
			if err != nil || strings.Count(mock.Requests()[0].Body, `"card":`) != n {
				t.Errorf("%d cards: %v, sent %v", n, err, mock.Requests())
			}
			continue
		}
		e := failure(t, resp, err)
		if !errors.Is(e, bins.ErrInvalidArgument) || e.StatusCode != 0 || e.Attempts != 0 || len(mock.Requests()) != 0 {
			t.Errorf("%d cards: %#v, %d requests", n, e, len(mock.Requests()))
		}
		if !strings.Contains(e.Error(), fmt.Sprintf("%d cards given, 1 to 50 allowed", n)) {
			t.Errorf("%d cards: the text does not say so: %v", n, e)
		}
	}
}

// Other unusable arguments are tested in internal/proof/conformance/matrix.
func TestLookupRefusesBrokenText(t *testing.T) {
	mock := testkit.NewMock("POST", testkit.Base+path)
	resp, err := newClient(t, mock).Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("411111", "422222\xff")})
	e := failure(t, resp, err)
	if !errors.Is(e, bins.ErrInvalidArgument) || len(mock.Requests()) != 0 || !strings.Contains(e.Error(), "card 2 of 2") {
		t.Errorf("%v after %d requests", e, len(mock.Requests()))
	}
}

// Requests and responses are printed masked, and logged as counts.
func TestRequestAndAnswerPrintNoCardNumber(t *testing.T) {
	const number = "4111111111111111"
	req := &bins.LookupRequest{Cards: bins.Cards(number)}
	resp := decoded(t, `{"cards":[{"bin":"`+number+`","error":"no card `+number+`","data":{"card":{"pan_or_token":"`+number+`"}}}]}`)
	for printed, want := range map[string]string{
		testkit.Printed(req)["slog text"]:           "value.cards=1",
		testkit.Printed(resp)["slog text"]:          "value.cards=1 value.request_id=req-7",
		testkit.Printed(resp.Cards[0])["%v"]:        "411111******1111",
		testkit.Printed(resp.Cards[0])["slog text"]: "bin=411111******1111",
		testkit.Printed(bins.BulkResult{Index: 3, Input: req.Cards[0].Card, Result: resp.Cards[0]})["slog JSON"]: `"index":3,"input":"411111******1111"`,
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("printed as %s, want %s", printed, want)
		}
		testkit.NoSecret(t, "it", printed, number)
	}
}

// The caller may change its slice after Cards.
func TestCardsAreCopied(t *testing.T) {
	own := []string{"411111", "555555"}
	cards := bins.Cards(own...)
	own[1] = "changed"
	if cards[1].Card.Reveal() != "555555" {
		t.Error("a card follows the slice that it came from")
	}
}
