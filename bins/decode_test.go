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
