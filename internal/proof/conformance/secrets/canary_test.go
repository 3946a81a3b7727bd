package secrets_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

const module = "github.com/carddata/carddata-go/"

// ownErrors yields err and what can be reached from it, as far as its types are
// this module's. The errors of others print what they like.
func ownErrors(err error, yield func(error)) {
	if err == nil {
		return
	}
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if strings.HasPrefix(t.PkgPath(), module) && !strings.HasPrefix(t.PkgPath(), module+"internal/proof/conformance") {
		yield(err)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		ownErrors(e.Unwrap(), yield)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			ownErrors(err, yield)
		}
	}
}

// checkError checks an error that the library returned, and every error of the library's own behind it.
func checkError(t *testing.T, name string, err error) {
	t.Helper()
	checkPrints(t, name, err)
	ownErrors(err, func(own error) { checkPrints(t, name, own) })
}

// TestCanaries plants secrets in everything that the library takes in, and
// looks for them in everything that the library prints, logs or returns as text.
func TestCanaries(t *testing.T) {
	var own bytes.Buffer
	standard := standardLog(t)
	handlers := &slog.HandlerOptions{Level: slog.LevelDebug - 4, AddSource: true}
	logger := slog.New(slog.NewMultiHandler(slog.NewTextHandler(&own, handlers), slog.NewJSONHandler(&own, handlers)))

	base := "https://service.test/" + planted("the base URL's path")
	options := []bins.Option{
		bins.WithLogger(logger), bins.WithRetryWait(0, 0), bins.WithUserAgent(planted("the user agent")),
		bins.WithHeader("X-Secret", planted("a header's value")), bins.WithMaxResponseBytes(4 << 10),
	}
	clients := func(t *testing.T, over http.RoundTripper) []operations.Operation {
		ids, opts := plantedIDs(), append(options, bins.WithHTTPClient(&http.Client{Transport: over}))
		list, err := operations.New(base, ids, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return append(list, operations.Operation{Name: "bulk refund", Call: func(ctx context.Context, call ...bins.Option) (any, error) {
			client, err := refunds.NewClient(base, slices.Concat(opts, call)...)
			if err != nil {
				t.Fatal(err)
			}
			for s, err := range client.SubmitAll(ctx, refunds.Items(ids.Account, slices.Values([]*refunds.Refund{ids.Refund})), refunds.BulkOptions{HoldFor: time.Millisecond}) {
				return &s, cmp.Or(err, s.Err)
			}
			return nil, nil
		}})
	}

	t.Run("options", func(t *testing.T) {
		source := func(context.Context) (string, error) { return planted("the access token"), nil }
		for name, v := range map[string]any{
			"a header": bins.WithHeader("X-Secret", planted("a header's value")), "all options": options,
			"the user agent":        bins.WithUserAgent(planted("the user agent")),
			"a static source":       bins.StaticToken(planted("the API key")),
			"a source of a func":    updater.TokenFunc(source),
			"the option of sources": refunds.WithTokenSource(refunds.TokenFunc(source)),
			"a transport":           bins.WithHTTPClient(&http.Client{Transport: answering(200, "")}),
			"a limiter":             updater.WithLimiter(leakyLimiter{planted("the limiter's error")}),
		} {
			checkPrints(t, name, v)
		}
	})
	t.Run("clients", func(t *testing.T) {
		for _, e := range clients(t, answering(200, "")) {
			checkPrints(t, e.Name, e.Client)
		}
	})
	t.Run("requests", func(t *testing.T) {
		ids := plantedIDs()
		request := &bins.LookupRequest{Cards: bins.Cards(ids.Cards...), Enhanced: new(true)}
		checkPrints(t, "a lookup", request)
		checkPrints(t, "an element of a lookup", request.Cards[0])
		checkPrints(t, "a refund", ids.Refund)
		for _, card := range request.Cards {
			checkPrints(t, "an identifier", card.Card)
			if !bins.NewIdentifier(card.Card.Reveal()).Equal(card.Card) {
				t.Error("Reveal is not the identifier's value")
			}
		}
	})
	t.Run("refused arguments", func(t *testing.T) {
		for name, err := range refusals(base) {
			if err == nil {
				t.Errorf("%s: accepted", name)
				continue
			}
			checkError(t, name, err)
		}
	})
	t.Run("decoding", func(t *testing.T) {
		for _, member := range []string{"pan_or_token", "bin_length", "level2", "bin_min", "number", "additional_card_brands"} {
			for _, value := range []string{"4111111111111111", "4111111111111111.5", `"4111111111111111.5"`, `"4111111111111111 x"`} {
				item := `{"data":{"card":{"` + member + `":` + value + `}}}`
				checkErrorOrNil(t, item, json.Unmarshal([]byte(item), new(bins.Result)))
			}
		}
		checkErrorOrNil(t, "a request", json.Unmarshal([]byte(`{"cards":[{"card":4111111111111111}]}`), new(bins.LookupRequest)))
	})
	t.Run("answers", func(t *testing.T) {
		for name, over := range plantedAnswers() {
			for _, e := range clients(t, over) {
				v, err := e.Call(t.Context())
				checkAnswer(t, e.Name+" of "+name, v, err)
			}
		}
		for _, e := range clients(t, leakyTransport{Answer: sendsBack}) {
			_, err := e.Call(t.Context())
			checkError(t, e.Name+" of an error that quotes the request", err)
		}
	})
	t.Run("before the request", func(t *testing.T) {
		ended, end := context.WithCancelCause(t.Context())
		end(leakyError{planted("the context's cause")})
		for name, option := range map[string]bins.Option{
			"limiter": bins.WithLimiter(leakyLimiter{planted("the limiter's error")}),
			"source": bins.WithTokenSource(bins.TokenFunc(func(context.Context) (string, error) {
				return planted("the access token"), leakyError{planted("the token source's error")}
			})),
			"broken token": bins.WithTokenSource(leakySource{planted("a token with a line break")}),
			"long token":   bins.WithTokenSource(leakySource{strings.Repeat(planted("the access token"), 1000)}),
			"spaced token": bins.WithTokenSource(leakySource{planted("the access token") + " "}),
		} {
			for _, e := range clients(t, answering(200, "")) {
				_, err := e.Call(t.Context(), option)
				if err == nil {
					t.Errorf("%s of %s: no error", e.Name, name)
				}
				checkError(t, e.Name+" of "+name, err)
			}
		}
		for _, e := range clients(t, answering(200, "")) {
			_, err := e.Call(ended)
			if !errors.Is(err, leakyError{planted("the context's cause")}) {
				t.Errorf("%s: the cause is lost in %v", e.Name, err)
			}
			checkError(t, e.Name+" of an ended context", err)
		}
	})
	for name, text := range map[string]string{"the standard log": standard.String(), "the library's log": own.String()} {
		for place, form := range secrets.in(text) {
			t.Errorf("%s shows the canary of %s as %q", name, place, form)
		}
	}
	if events := strings.Count(own.String(), "msg=call"); events < 100 {
		t.Errorf("the library logged %d calls, and so the test looked at nothing", events)
	}
	if standard.Len() > 0 {
		t.Errorf("the standard log says %.300s", standard)
	}
}

// TestEchoes has the service repeat each credential and each id of a call, in every form,
// as the code of an error and as a request id. Both are printed, unless they are such a
// repetition.
func TestEchoes(t *testing.T) {
	forms := map[string]func(string) string{
		"as it is": func(s string) string { return s }, "in capitals": strings.ToUpper,
		"without separators": func(s string) string { return strings.ReplaceAll(s, "-", "") },
		"in a code":          func(s string) string { return "err_" + s + "_missing" },
		"as hex":             func(s string) string { return hex.EncodeToString([]byte("id=" + s)) },
		"as Base64":          func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("k:" + s)) },
	}
	common := []string{"the base URL's path", "a header's value"}
	places := map[string][]string{"lookup": {"the API key", "a card's token"}, "download": {"the access token", "the merchant id", "the job id"}, "refund": {"the account id"}}
	for place := range plants {
		if name, ok := strings.CutPrefix(place, "refund: "); ok && (strings.HasSuffix(name, "ID") || strings.HasSuffix(name, "Number") || strings.HasPrefix(name, "metadata")) {
			places["refund"] = append(places["refund"], place)
		}
	}
	for i, operation := range []string{"lookup", "refund", "download"} {
		for _, place := range slices.Concat(common, places[operation]) {
			for name, form := range forms {
				said := form(planted(place))
				echo := canary{value: said, data: true}
				var log bytes.Buffer
				list, err := operations.New("https://service.test/"+planted("the base URL's path"), plantedIDs(),
					bins.WithHTTPClient(&http.Client{Transport: answering(400, `{"error":{"code":"`+said+`"}}`, "X-Request-Id", said)}),
					bins.WithHeader("X-Secret", planted("a header's value")), bins.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
				if err != nil {
					t.Fatal(err)
				}
				what := operation + ", " + place + " " + name
				_, err = list[i].Call(t.Context())
				if err == nil {
					t.Fatalf("%s: no error", what)
				}
				plants[what] = echo
				find := newFinder(map[string]canary{what: echo})
				ownErrors(err, func(own error) { checkPrintsOf(t, what, own, find) })
				if strings.Contains(log.String(), said) {
					t.Errorf("%s: the log shows it: %s", what, &log)
				}
				delete(plants, what)
			}
		}
	}
}

// checkAnswer checks what a call returned.
func checkAnswer(t *testing.T, name string, v any, err error) {
	t.Helper()
	if err != nil {
		checkError(t, name, err)
	}
	if r := reflect.ValueOf(v); !r.IsValid() || r.IsNil() {
		return
	}
	checkPrints(t, name, v)
	switch v := v.(type) {
	case *refunds.Receipt:
		checkErrorOrNil(t, name, v.BodyErr)
	case *refunds.Submission:
		if v.Receipt != nil {
			checkAnswer(t, name, v.Receipt, nil)
		}
	case *bins.LookupResponse:
		for _, result := range v.Cards {
			checkPrints(t, name, result)
			if result.Data != nil {
				checkPrints(t, name, result.Data)
			}
			card, err := result.Card()
			checkErrorOrNil(t, name, err)
			if card != nil {
				checkPrints(t, name, card)
			}
		}
	}
}

func checkErrorOrNil(t *testing.T, name string, err error) {
	t.Helper()
	if err != nil {
		checkError(t, name, err)
	}
}

// refusals are the errors of arguments that hold a secret and cannot be used.
func refusals(base string) map[string]error {
	key, token := bins.StaticToken(planted("the API key")), updater.StaticToken(planted("the access token"))
	list := map[string]error{}
	client := func(name, base string, opts ...bins.Option) {
		_, list[name] = bins.NewClient(base, key, opts...)
		_, list[name+" (refunds)"] = refunds.NewClient(base, opts...)
		_, list[name+" (updater)"] = updater.NewClient(base, planted("the merchant id"), token, opts...)
	}
	user, path := planted("the base URL's user"), planted("the base URL's path")
	client("user", "https://"+user+":"+user+"@service.test")
	client("query", "https://service.test?"+user)
	client("fragment", "https://service.test#"+user)
	client("unparsable", "https://"+user+":"+user+"@service.test:port/"+path)
	client("unescapable", "https://service.test/%zz"+path)
	client("line break", "https://service.test/"+path+"\r\n")
	client("scheme", user+"://service.test")
	client("no host", "https:///"+path)
	client("http", "http://"+user+".test/"+path)
	client("dots", "https://service.test/../"+path)
	client("header name", base, bins.WithHeader(planted("a refused header's name")+":", "v"))
	client("header value", base, bins.WithHeader("X-Secret", planted("a header's value")+"\n"))
	client("reserved header", base, bins.WithHeader("X-Merchant-Id", planted("a header's value")))
	client("user agent", base, bins.WithUserAgent(planted("the user agent")+"\r\nX: y"))
	client("token", base, bins.WithTokenSource(bins.StaticToken(planted("a token with a line break"))))
	client("token and header", base, bins.WithTokenSource(key), bins.WithHeader("Authorization", planted("a header's value")))

	_, list["merchant"] = updater.NewClient(base, planted("the merchant id")+"\r\n", token)
	downloads, err := updater.NewClient(base, planted("the merchant id"), token)
	submissions, errRefunds := refunds.NewClient(base)
	lookups, errBins := bins.NewClient(base, key)
	if err := errors.Join(err, errRefunds, errBins); err != nil {
		return map[string]error{"clients": err}
	}
	_, list["other merchant"] = downloads.ForMerchant(planted("the merchant id") + ",x")
	ctx := context.Background()
	_, list["job"] = downloads.Download(ctx, planted("the job id")+"/..")
	record := plantedIDs().Refund
	_, list["account"] = submissions.Submit(ctx, planted("the account id")+"\n", record)
	record.AdditionalData.Metadata["func"] = func() {}
	_, list["metadata"] = submissions.Submit(ctx, planted("the account id"), record)
	record.AdditionalData.Metadata["func"] = planted("refund: metadata's value") + "\xff"
	_, list["metadata text"] = submissions.Submit(ctx, planted("the account id"), record)
	_, list["card text"] = lookups.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards("4111111111111111\xff")})
	_, list["cards"] = lookups.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(strings.Fields(strings.Repeat("4111111111111111 ", 51))...)})
	return list
}
