package bins_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
)

// canaries are in bodies and causes, and must be in no text of an error.
var canaries = []string{"4111111111111111", "378282246310005", "canary"}

func TestUnusableAnswers(t *testing.T) {
	many := `{"cards":[` + strings.Repeat(`null,`, 100_001) + `{}]}`
	objects := `{"cards":[` + strings.Repeat(`{},`, 9_999) + `{}]}`
	item := func(card string) string { return `{"cards":[{"bin":"canary","data":{"card":{` + card + `}}}]}` }
	tests := map[string]struct {
		body   string
		header []string
		kind   error
		says   string
	}{
		"nothing":                    {body: "", says: "not an object"},
		"null":                       {body: "null", says: "not an object"},
		"an array":                   {body: `[{"bin":"4111111111111111"}]`, says: "not an object"},
		"a string":                   {body: `"4111111111111111"`, says: "not an object"},
		"text":                       {body: "canary 4111111111111111", says: "not an object"},
		"a byte order mark":          {body: "\ufeff" + `{"cards":[]}`, says: "not an object"},
		"trailing data":              {body: `{"cards":[]}{"canary":1}`, says: "a syntax error at byte"},
		"cut off":                    {body: `{"cards":[{"bin":"4111111111111111`, says: "a syntax error at byte"},
		"cut off in a character":     {body: "{\"cards\":[{\"bin\":\"\u00e9", says: "a syntax error at byte"},
		"cards is an object":         {body: `{"cards":{"canary":"4111111111111111"}}`, says: "cards has another type"},
		"an item is a string":        {body: `{"cards":["4111111111111111"]}`},
		"a string is a number":       {body: item(`"card_brand":4111111111111111`), says: "card_brand has another type"},
		"a boolean is a string":      {body: item(`"prepaid":"canary"`)},
		"an integer is text":         {body: item(`"bin_length":"canary"`)},
		"an integer is null, quoted": {body: item(`"bin_length":"null"`)},
		"an integer is a fraction":   {body: item(`"number":{"length":16.5}`)},
		"an integer is too large":    {body: item(`"bin_length":"9223372036854775808"`)},
		"a number is too large":      {body: item(`"bin_length":41111111111111111111`)},
		"an identifier is a number":  {body: item(`"pan_or_token":4111111111111111`)},
		"too many members":           {body: many, says: "too many members"},
		"too many objects":           {body: objects, says: "too many members"},
		"a page by header":           {body: `{"cards":[]}`, header: []string{"Content-Type", "text/html; charset=utf-8"}, says: "an HTML page"},
		"a page by its body":         {body: "\n<!DOCTYPE html><p>canary", header: []string{"Content-Type", "application/json"}, says: "an HTML page"},
		"encoded":                    {body: `{"cards":[]}`, header: []string{"Content-Encoding", "br"}, says: "content encoding"},
		"above the cap":              {body: `{"cards":[]}` + strings.Repeat(" ", 8<<20), kind: bins.ErrResponseTooLarge, says: "exceeds the size limit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mock := newAnswer(200, test.body, append(test.header, "X-Request-Id", "req-7")...)
			resp, err := newClient(t, mock).Lookup(t.Context(), request())
			e := failure(t, resp, err)
			if test.kind == nil {
				test.kind = bins.ErrBadResponse
			}
			if !errors.Is(e, test.kind) || e.StatusCode != 200 || e.RequestID != "req-7" || e.Attempts != 1 || e.Operation != "lookup" {
				t.Errorf("%v: status %d, request id %q, %d attempts", e, e.StatusCode, e.RequestID, e.Attempts)
			}
			if test.says == "" {
				test.says = "is not the documented JSON"
			}
			for _, says := range []string{test.says, "status 200", "req-7"} {
				if !strings.Contains(e.Error(), says) {
					t.Errorf("the text does not say %q: %v", says, e)
				}
			}
			testkit.NoLeak(t, err, canaries...)
			causes(e, func(cause error) { testkit.NoSecret(t, "a cause", cause.Error(), canaries...) })
		})
	}
}

// causes visits err and all errors that it wraps.
func causes(err error, visit func(error)) {
	visit(err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			causes(cause, visit)
		}
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			causes(cause, visit)
		}
	}
}

// The limits of members and objects allow the largest documented response.
func TestFiftyFullItemsFit(t *testing.T) {
	full := fullResponse(t)
	item := full[strings.Index(full, "[")+1 : strings.LastIndex(full, "]")]
	decoded(t, `{"cards":[`+strings.Repeat(`{},`, 9_998)+strings.Repeat(`null,`, 90_002)+`{}]}`)
	resp := decoded(t, `{"cards":[`+strings.Repeat(item+",", bins.MaxCards-1)+item+`]}`)
	if len(resp.Cards) != bins.MaxCards || resp.Cards[49].Data.Card.CorrelationID != "c-0001" {
		t.Errorf("%d items", len(resp.Cards))
	}
}

func TestErrorOfAStatus(t *testing.T) {
	mock := newAnswer(404, `{"code":"no_such_thing","message":"canary 4111111111111111"}`, "X-Request-Id", "req-7")
	resp, err := newClient(t, mock).Lookup(t.Context(), request())
	e := failure(t, resp, err)
	if !errors.Is(e, bins.ErrNotFound) || e.StatusCode != http.StatusNotFound || e.Code != "no_such_thing" ||
		e.Message() != "canary 4111111111111111" || len(e.Body()) == 0 {
		t.Errorf("%v: %q, %q, %q", e, e.Code, e.Message(), e.Body())
	}
	if want := "bins: lookup: refused (status 404 Not Found, code no_such_thing, request id req-7, 1 attempt)"; e.Error() != want {
		t.Errorf("the text is %q, not %q", e, want)
	}
	testkit.NoLeakUnderAnyVerb(t, e, canaries...)
	testkit.NoLeakUnderAnyVerb(t, *e, canaries...)
	if text := string(testkit.Encoded(t, e)); text != `"`+e.Error()+`"` {
		t.Errorf("as JSON: %s", text)
	}
	if !errors.Is(&bins.Error{StatusCode: 429}, bins.ErrRateLimited) {
		t.Error("an error made by hand does not match by its status")
	}
}

func TestItemErrorPrintsNeitherBINNorMessage(t *testing.T) {
	result := bins.Result{BIN: "4111111111111111", Error: "canary 378282246310005"}
	_, err := result.Card()
	e, ok := errors.AsType[*bins.ItemError](err)
	if !ok || e.BIN() != result.BIN || e.Message() != result.Error {
		t.Fatalf("%v, %v", err, e)
	}
	testkit.NoLeakUnderAnyVerb(t, e, canaries...)
	testkit.NoLeakUnderAnyVerb(t, *e, canaries...)
	if text := string(testkit.Encoded(t, e)); text != `"bins: the item holds an error"` {
		t.Errorf("as JSON: %s", text)
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

// A code or a request id that repeats a card number or a token is not printed. One that repeats
// a BIN is. The header can be read, and is not printed.
func TestErrorRepeatsNoCard(t *testing.T) {
	req := &bins.LookupRequest{Cards: bins.Cards("tok_canary", "411111", "4111111111111111")}
	for said, printed := range map[string]bool{
		"tok_canary": false, "unknown.TOK-CANARY": false, "4111-1111-1111-1111": false, "bin.411111.unknown": true,
	} {
		mock := newAnswer(400, `{"code":"`+said+`","message":"canary"}`, "X-Request-Id", said, "X-Other", "canary")
		resp, err := newClient(t, mock).Lookup(t.Context(), req)
		e := failure(t, resp, err)
		if (e.Code == said) != printed || (e.RequestID == said) != printed || e.Header().Get("X-Request-Id") != said {
			t.Errorf("%s: code %q, request id %q", said, e.Code, e.RequestID)
		}
		testkit.NoLeakUnderAnyVerb(t, err, "canary", "CANARY")
	}
	resp, err := newClient(t, newAnswer(200, `{"cards":[]}`, "X-Quota", "canary")).Lookup(t.Context(), req)
	if err != nil || resp.Header().Get("X-Quota") != "canary" || (&bins.LookupResponse{}).Header() != nil {
		t.Errorf("%v, %v", resp, err)
	}
	testkit.NoLeakUnderAnyVerb(t, resp, "canary")
	testkit.NoLeakUnderAnyVerb(t, *resp, "canary")
}

// An item with a member of another type fails alone: its error names the member, its bin stays,
// and nothing else of it is used.
func TestItemOfAnotherType(t *testing.T) {
	for item, says := range map[string]string{
		`{"bin":"canary","error":"e","data":{"card":{"card_brand":"X","level2":"Y"}}}`:        "data.card.level2 has another type",
		`{"data":{"card":{"additional_card_brands":[{},{"ecom_enabled":1}]}},"bin":"canary"}`: "data.card.additional_card_brands.ecom_enabled has another type",
		`{"bin":"canary","data":[]}`: "data has another type",
		`{"bin":4111111111111111}`:   "bin has another type",
		`[]`:                         "it has another type",
	} {
		mock := newAnswer(200, `{"cards":[`+item+`,{"bin":"411111","data":{"card":{"networkfees":null}}}]}`)
		resp, err := newClient(t, mock).Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("411111", "canary"), KeepRaw: true})
		if err != nil || len(resp.Cards) != 2 {
			t.Fatalf("%s: %v", item, err)
		}
		bad, good := resp.Cards[0], resp.Cards[1]
		if good.Err != nil || good.Data.Card.NetworkFees != nil || string(bad.Raw) != item {
			t.Errorf("%s: %+v and %s", item, good, bad.Raw)
		}
		if !errors.Is(bad.Err, bins.ErrBadResponse) || !strings.Contains(bad.Err.Error(), ": "+says) || bad.Data != nil || bad.Error != "" || (bad.BIN == "canary") != strings.Contains(item, "canary") {
			t.Errorf("%s: %v, %+v", item, bad.Err, bad)
		}
		testkit.NoLeakUnderAnyVerb(t, bad.Err, canaries...)
	}
}

// A printed result says that it has an error, without the service's words.
func TestResultPrintsNoWordsOfTheService(t *testing.T) {
	r := bins.Result{BIN: "411111", Error: "unknown: canary 3782 822463 10005"}
	testkit.NoLeak(t, r, "canary", "10005")
	testkit.NoLeak(t, bins.LookupResponse{Cards: []bins.Result{r}}, "10005")
	if text := fmt.Sprintf("%v %v", r, bins.Result{BIN: "411111"}); text != "{411111 <nil> ****} {411111 <nil> }" {
		t.Error(text)
	}
}
