package bins_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
)

// What is not a response to a lookup fails the call, and the text says why. HTML pages and
// encodings are tested in internal/proof/conformance/matrix.
func TestUnusableAnswers(t *testing.T) {
	for body, says := range map[string]string{
		"":                                   "not an object",
		"null":                               "not an object",
		`[{"bin":"4111111111111111"}]`:       "not an object",
		"\ufeff" + `[]`:                      "not an object",
		`{"cards":[]}{"canary":1}`:           "a syntax error at byte",
		`{"cards":[{"bin":"4111111111111111`: "a syntax error at byte",
		`{"cards":[],"page":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}": "a syntax error at byte",
		`{"cards":{"bin":"4111111111111111"}}`:                                                  "cards has another type",
		`{"cards":"4111111111111111"}`:                                                          "cards has another type",
		`{"cards":4111111111111111}`:                                                            "cards has another type",
		`{"cards":false}`:                                                                       "cards has another type",
		`{"cards":[],"cards":{}}`:                                                               "cards has another type",
		`{"cards":[` + strings.Repeat(`null,`, 100_001) + `{}]}`:                                "too many members",
		`{"cards":[` + strings.Repeat(`{},`, 9_999) + `{}]}`:                                    "too many members",
		`{"cards":[]}` + strings.Repeat(" ", 8<<20):                                             "exceeds the size limit",
	} {
		resp, err := newClient(t, newAnswer(200, body, "X-Request-Id", "req-7")).Lookup(t.Context(), request())
		e := failure(t, resp, err)
		if !errors.Is(e, bins.ErrBadResponse) || e.StatusCode != 200 || e.RequestID != "req-7" || e.Attempts != 1 || !strings.Contains(e.Error(), says) {
			t.Errorf("%.40s: %v", body, e)
		}
	}
}

// A code or a request id that repeats a card number or a token is not printed. One that repeats
// a BIN is. The header can be read.
func TestErrorRepeatsNoCard(t *testing.T) {
	req := &bins.LookupRequest{Cards: bins.Cards("tok_canary", "411111", "4111111111111111")}
	for said, printed := range map[string]bool{"unknown.TOK-CANARY": false, "4111-1111-1111-1111": false, "bin.411111.unknown": true} {
		resp, err := newClient(t, newAnswer(400, `{"code":"`+said+`"}`, "X-Request-Id", said)).Lookup(t.Context(), req)
		e := failure(t, resp, err)
		if (e.Code == said) != printed || (e.RequestID == said) != printed || e.Header().Get("X-Request-Id") != said {
			t.Errorf("%s: code %q, request id %q", said, e.Code, e.RequestID)
		}
	}
	resp, err := newClient(t, newAnswer(200, `{"cards":[]}`, "X-Quota", "7")).Lookup(t.Context(), req)
	if err != nil || resp.Header().Get("X-Quota") != "7" {
		t.Errorf("%v, %v", resp, err)
	}
}

// A 200 with an error object and without cards is a failure, with the code of the object.
func TestErrorInPlaceOfCards(t *testing.T) {
	for body, fails := range map[string]bool{
		`{"error":{"code":"quota","message":"m","details":{}}}`: true,
		`{"request":"1","error":{"code":"quota"}}`:              true,
		`{"cards":null,"error":{"code":"quota"}}`:               false,
		`{"cards":[],"error":{"code":"quota"}}`:                 false,
		`{"error":"quota"}`:                                     false,
		`{}`:                                                    false,
	} {
		mock := testkit.NewMock("POST", testkit.Base+path, testkit.Answer(200, body))
		_, err := newClient(t, mock).Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("411111")})
		e, _ := errors.AsType[*bins.Error](err)
		if (err != nil) != fails || fails && (!errors.Is(err, bins.ErrBadResponse) || e.Code != "quota" || e.StatusCode != 200) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
