package bins_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
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

// places lists every documented value below v.
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

// emptied is the value that null is read and encoded as.
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

// Strings keep their letter case and leading zeros, because their meaning is not documented.
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

// Buffers are reused, but a later response changes no earlier one.
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
