package secrets_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
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

// checkError checks an error that the library returned, if there is one, and every error of the
// library's own behind it.
func checkError(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	checkPrints(t, name, err)
	ownErrors(err, func(own error) { checkPrints(t, name, own) })
}

// TestCanaries plants secrets in everything that the library takes in, and
// looks for them in everything that the library prints, logs or returns as text.
func TestCanaries(t *testing.T) {
	var own bytes.Buffer
	var standard bytes.Buffer
	before := log.Writer()
	log.SetOutput(&standard)
	t.Cleanup(func() { log.SetOutput(before) })
	handlers := &slog.HandlerOptions{Level: slog.LevelDebug - 4, AddSource: true}
	logger := slog.New(slog.NewMultiHandler(slog.NewTextHandler(&own, handlers), slog.NewJSONHandler(&own, handlers)))

	path := "/" + planted("the base URL's path")
	base := "https://service.test" + path
	dir := filepath.Join(t.TempDir(), planted("a file's path"))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, planted("a file's path"))
	common := []options.Option{
		options.WithLogger(logger), options.WithRetryWait(0, 0), options.WithUserAgent(planted("the user agent")),
		options.WithHeader("X-Secret", planted("a header's value")),
	}
	clientsAt := func(t *testing.T, base string, opts ...options.Option) []operations.Operation {
		ids := plantedIDs()
		opts = slices.Concat(common, opts)
		list, err := operations.New(base, ids, opts...)
		others, errOthers := operations.New(base, ids, opts...) // no pause of the first ones holds them
		if err := errors.Join(err, errOthers); err != nil {
			t.Fatal(err)
		}
		submissions, downloads := others[1].Client.(*refunds.Client), others[2].Client.(*updater.Client)
		return append(list, operations.Operation{Name: "bulk refund", Client: submissions, Call: func(ctx context.Context, call ...options.Option) (any, error) {
			records := refunds.Items(ids.Account, slices.Values([]*refunds.Refund{ids.Refund}))
			for s, err := range submissions.SubmitAll(ctx, records, refunds.BulkOptions{GiveUpAfter: time.Millisecond}, options.For[refunds.CallOption](call)...) {
				return &s, cmp.Or(err, s.Err)
			}
			return nil, nil
		}}, operations.Operation{Name: "download to a file", Client: downloads, Call: func(ctx context.Context, call ...options.Option) (any, error) {
			return downloads.DownloadFile(ctx, ids.Job, file, updater.FileOptions{AcceptUnverified: true}, options.For[updater.CallOption](call)...)
		}})
	}
	clients := func(t *testing.T, over http.RoundTripper) []operations.Operation {
		return clientsAt(t, base, options.WithHTTPClient(&http.Client{Transport: over}))
	}

	t.Run("options", func(t *testing.T) {
		source := func(context.Context) (string, error) { return planted("the access token"), nil }
		for name, v := range map[string]any{
			"a header": options.WithHeader("X-Secret", planted("a header's value")), "all options": common,
			"the user agent":        options.WithUserAgent(planted("the user agent")),
			"a static source":       bins.StaticToken(planted("the API key")),
			"a source of a func":    updater.TokenFunc(source),
			"the option of sources": refunds.WithTokenSource(refunds.TokenFunc(source)),
			"a transport":           options.WithHTTPClient(&http.Client{Transport: answering(200, "")}),
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
				checkError(t, item, json.Unmarshal([]byte(item), new(bins.Result)))
			}
		}
		checkError(t, "a request", json.Unmarshal([]byte(`{"cards":[{"card":4111111111111111}]}`), new(bins.LookupRequest)))
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
	// net/http quotes what is not quite HTTP in its errors, and could write it to the standard
	// log. That log would also get what a service sends beyond the end of an answer, while the
	// connection is kept for the next request: net/http offers no way to keep it silent.
	t.Run("broken HTTP", func(t *testing.T) {
		for name, answer := range brokenHTTP() {
			for _, e := range clientsAt(t, testkit.AnswerWire(t, answer).Base+path, options.WithMaxRetries(1)) {
				v, err := e.Call(t.Context())
				checkAnswer(t, e.Name+" of "+name, v, err)
			}
		}
	})
	t.Run("files", func(t *testing.T) {
		client := func(over http.RoundTripper) *updater.Client {
			return clients(t, over)[2].Client.(*updater.Client)
		}
		for name, to := range map[string]string{
			"a directory": dir, "a missing directory": filepath.Join(dir, planted("a file's path"), "x"),
			"a broken path": file + "\x00", "a long name": file + strings.Repeat("n", 255),
		} {
			_, err := client(answering(200, planted("an answer's body"))).DownloadFile(t.Context(), plantedIDs().Job, to, updater.FileOptions{})
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			checkError(t, name, err)
		}
		// The rest of a content that broke is refused, and a note stays of what came.
		mock := testkit.NewMock("GET", base+"/updater/inquiries/jobs/"+plantedIDs().Job+"/download",
			func(r *http.Request) (*http.Response, error) {
				resp, err := brokenBody(r)
				resp.Header, resp.ContentLength = http.Header{"Etag": {`"v1"`}}, 1000
				return resp, err
			}, testkit.Answer(404, planted("an answer's body"), "ETag", planted("an error's code"), "Content-Range", planted("an error's code")))
		_, err := client(mock).DownloadFile(t.Context(), plantedIDs().Job, file, updater.FileOptions{})
		if !errors.Is(err, updater.ErrNotFound) {
			t.Fatal(err)
		}
		checkError(t, "a broken content", err)
		note, err := os.ReadFile(filepath.Join(dir, "."+filepath.Base(file)+".part.json"))
		if err != nil {
			t.Fatal(err)
		}
		for place, form := range secrets.in(string(note)) {
			t.Errorf("the note shows the canary of %s as %q", place, form)
		}
	})
	t.Run("before the request", func(t *testing.T) {
		ended, end := context.WithCancelCause(t.Context())
		end(leakyError{planted("the context's cause")})
		for name, option := range map[string]options.Option{
			"limiter": options.WithLimiter(leakyLimiter{planted("the limiter's error")}),
			"source": options.WithTokenSource(bins.TokenFunc(func(context.Context) (string, error) {
				return planted("the access token"), leakyError{planted("the token source's error")}
			})),
			"broken token": options.WithTokenSource(leakySource{planted("a token with a line break")}),
			"long token":   options.WithTokenSource(leakySource{strings.Repeat(planted("the access token"), 1000)}),
			"spaced token": options.WithTokenSource(leakySource{planted("the access token") + " "}),
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
	if events := strings.Count(own.String(), "msg=call"); events < 100 || !strings.Contains(own.String(), "msg=reconnect") {
		t.Errorf("the library logged %d calls or no reconnect, and so the test looked at little", events)
	}
	if standard.Len() > 0 {
		t.Errorf("the standard log says %.300s", standard.String())
	}
}

// checkAnswer checks what a call returned.
func checkAnswer(t *testing.T, name string, v any, err error) {
	t.Helper()
	checkError(t, name, err)
	if r := reflect.ValueOf(v); !r.IsValid() || r.IsNil() {
		return
	}
	checkPrints(t, name, v)
	switch v := v.(type) {
	case *refunds.Receipt:
		checkError(t, name, v.BodyErr)
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
			checkError(t, name, err)
			if card != nil {
				checkPrints(t, name, card)
			}
		}
	}
}
