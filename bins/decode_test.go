package bins_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/testkit"
)

func fullResponse(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/response.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFullResponseSurvivesDecodingAndEncoding(t *testing.T) {
	body := fullResponse(t)
	resp := decoded(t, body)
	for _, path := range testkit.Unset(resp) {
		if !strings.HasSuffix(path, ".Err") && !strings.HasSuffix(path, ".Stale") {
			t.Errorf("%s has no value", path)
		}
	}
	testkit.SameJSON(t, "the response, decoded and encoded,", testkit.Encoded(t, resp), []byte(body))
}

// A place is one value in a JSON text: set replaces it.
type place struct {
	path string
	old  any
	set  func(any)
	drop func() // nil for the elements of arrays
}

// places lists every value below v, which is not documented inside networkfees.
func places(path string, v any, list *[]place) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			below := path + "." + name
			*list = append(*list, place{below, member, func(n any) { v[name] = n }, func() { delete(v, name) }})
			if name != "networkfees" {
				places(below, member, list)
			}
		}
	case []any:
		for i, element := range v {
			below := fmt.Sprintf("%s[%d]", path, i)
			*list = append(*list, place{below, element, func(n any) { v[i] = n }, nil})
			places(below, element, list)
		}
	}
}

// emptied is what a value reads as, and so is encoded as, when it is null.
func emptied(path string, v any) any {
	for _, nullable := range []string{".cards", ".data", ".data.card", ".networkfees", ".additional_card_brands"} {
		if strings.HasSuffix(path, nullable) {
			return nil
		}
	}
	switch v := v.(type) {
	case string:
		return ""
	case map[string]any:
		object := make(map[string]any)
		for name, member := range v {
			object[name] = emptied(path+"."+name, member)
		}
		return object
	}
	return nil // a boolean or an integer that is not stated
}

func isLeaf(p place) bool {
	switch p.old.(type) {
	case map[string]any, []any:
		return strings.HasSuffix(p.path, ".networkfees")
	}
	return true
}

func TestNullAndAbsentAreEmpty(t *testing.T) {
	root := testkit.Generic(t, []byte(fullResponse(t)))
	var all []place
	places("", root, &all)
	if len(all) < 90 {
		t.Fatalf("the full response has %d values only", len(all))
	}
	check := func(name, body string, want []byte) {
		t.Helper()
		testkit.SameJSON(t, name, testkit.Encoded(t, decoded(t, body)), want)
	}
	for _, p := range all {
		p.set(nil)
		null := testkit.Encoded(t, root)
		p.set(emptied(p.path, p.old))
		want := testkit.Encoded(t, root)
		check(p.path+": null", string(null), want)
		if p.drop != nil {
			p.drop()
			check(p.path+" absent", string(testkit.Encoded(t, root)), want)
		}
		p.set(p.old)
	}
	for _, p := range all {
		if isLeaf(p) {
			p.set(nil)
		}
	}
	null := testkit.Encoded(t, root)
	for _, p := range all {
		if isLeaf(p) {
			p.set(emptied(p.path, p.old))
		}
	}
	check("every leaf null", string(null), testkit.Encoded(t, root))
}

func TestNullIsSafeToRead(t *testing.T) {
	if resp := decoded(t, `{"cards":[]}`); resp.Cards == nil || len(resp.Cards) != 0 {
		t.Errorf("no items read as %#v", resp.Cards)
	}
	for _, item := range []string{`null`, `{}`, `{"data":null}`, `{"data":{}}`, `{"data":{"card":null}}`} {
		resp := decoded(t, `{"cards":[`+item+`]}`)
		if got, err := resp.Cards[0].Card(); got != nil || err == nil {
			t.Errorf("%s: %v, %v", item, got, err)
		}
	}
}

// Whether letter case and leading zeros carry a meaning is not documented, so they stay.
func TestStringsStay(t *testing.T) {
	c := card(t, `{"cards":[{"bin":"36","data":{"card":{
		"card_brand":"vIsA","type":"DEBIT","country":{"numeric":"036"},"issuer_currency":"0840"}}}]}`)
	if c.CardBrand != "vIsA" || c.Type != "DEBIT" || c.Country.Numeric != "036" || c.IssuerCurrency != "0840" {
		t.Errorf("strings: %+v", c)
	}
}

func TestUnknownMembersAreReachable(t *testing.T) {
	const item = `{"bin":"1","data":{"card":{"risk":{"score":12345678901234567890}}},"since":"today"}`
	resp := decoded(t, `{"page":1,"cards":[null, `+item+` ,{}]}`)
	for i, want := range []string{`null`, item, `{}`} {
		if string(resp.Cards[i].Raw) != want {
			t.Errorf("item %d: %s", i, resp.Cards[i].Raw)
		}
	}
}

func TestRawIsKeptOnRequestOnly(t *testing.T) {
	resp, err := newClient(t, newAnswer(200, `{"cards":[{"bin":"1"}]}`)).Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("1")})
	if err != nil || resp.Cards[0].Raw != nil {
		t.Errorf("%s, %v", resp.Cards[0].Raw, err)
	}
}

func TestResultCardInEveryMix(t *testing.T) {
	data := &bins.Data{Card: &bins.Card{CardBrand: "FIRST BRAND"}}
	for name, test := range map[string]struct {
		result bins.Result
		card   bool
		err    string
	}{
		"card alone":     {bins.Result{BIN: "1", Data: data}, true, ""},
		"error alone":    {bins.Result{BIN: "2", Error: "unknown"}, false, "bins: the item holds an error"},
		"card and error": {bins.Result{BIN: "3", Data: data, Error: "old"}, true, "bins: the item holds an error"},
		"neither":        {bins.Result{BIN: "4"}, false, "bins: the item holds neither a card nor an error"},
		"data, no card":  {bins.Result{BIN: "5", Data: &bins.Data{}}, false, "bins: the item holds neither a card nor an error"},
	} {
		got, err := test.result.Card()
		if (got != nil) != test.card || got != nil && got.CardBrand != "FIRST BRAND" {
			t.Errorf("%s: the card is %v", name, got)
		}
		if test.err == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		item, ok := errors.AsType[*bins.ItemError](err)
		if !ok || item.Error() != test.err || item.BIN() != test.result.BIN || item.Message() != test.result.Error {
			t.Errorf("%s: %v", name, err)
		}
	}
}
