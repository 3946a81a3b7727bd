package bins_test

import (
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
		if !strings.HasSuffix(path, ".Err") && !strings.HasSuffix(path, ".Stale") && !strings.HasSuffix(path, ".Unread") {
			t.Errorf("%s has no value", path)
		}
	}
	testkit.SameJSON(t, "the response, decoded and encoded,", testkit.Encoded(t, resp), []byte(body))
}

// A member that is null reads as one that is left out.
func TestNullIsAsAbsent(t *testing.T) {
	root := testkit.Generic(t, []byte(fullResponse(t)))
	members := 0
	var check func(path string, v any)
	check = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if members++; name != "networkfees" {
					check(path+"."+name, member)
				}
				v[name] = nil
				null := decoded(t, string(testkit.Encoded(t, root)))
				delete(v, name)
				absent := decoded(t, string(testkit.Encoded(t, root)))
				testkit.SameJSON(t, path+"."+name+": null", testkit.Encoded(t, null), testkit.Encoded(t, absent))
				v[name] = member
			}
		case []any:
			for _, element := range v {
				check(path, element)
			}
		}
	}
	if check("", root); members < 80 {
		t.Errorf("the full response has %d members", members)
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
	resp, err := newClient(t, newAnswer(200, `{"cards":[`+item+`]}`)).Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("1")})
	if err != nil || resp.Cards[0].Raw != nil {
		t.Errorf("kept without being asked for: %s, %v", resp.Cards[0].Raw, err)
	}
}
