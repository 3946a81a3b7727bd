package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestDescribe(t *testing.T) {
	for want, f := range map[string]*Failure{
		"bins": {},
		"bins: lookup: refused (status 429 Too Many Requests, code slow, request id r-1, retry after 3s, 4 attempts)": {
			Operation: "lookup", StatusCode: 429, Code: "slow", RequestID: "r-1", RetryAfter: 2600 * time.Millisecond, Attempts: 4, Err: because("refused")},
		"bins: lookup: no answer (1 attempt)":           {Operation: "lookup", Attempts: 1, Err: fmt.Errorf("secret: %w", because("no answer"))},
		"bins: lookup: failed":                          {Operation: "lookup", Err: errors.New("secret")},
		"bins: lookup (status 503 Service Unavailable)": {Operation: "lookup", StatusCode: 503, Message: "secret", Body: []byte("secret"), Details: json.RawMessage(`"secret"`)},
		"bins: lookup (status 599)":                     {Operation: "lookup", StatusCode: 599, Code: "not a code", RequestID: "4111111111111111"},
	} {
		got := Describe("bins", f)
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
			if printed := fmt.Sprintf(verb, printer(got)); printed != want {
				t.Errorf("%s prints %q", verb, printed)
			}
		}
		if printed := fmt.Sprintf("%q", printer(got)); printed != fmt.Sprintf("%q", want) {
			t.Errorf("%%q prints %s", printed)
		}
	}
}

type printer string

func (p printer) Format(s fmt.State, verb rune) { Format(s, verb, string(p)) }

func TestPrintable(t *testing.T) {
	for _, s := range []string{"a", "not_found", "E-1001", "req.1:2", "0af7651916cd43dd8448eb211c80319c", strings.Repeat("a", 128), "12345678901"} {
		if Printable(s) != s {
			t.Errorf("%q is hidden", s)
		}
	}
	for _, s := range []string{
		"", "a b", "a\nb", "é", `"`, "a/b", "<a>", "a=b", strings.Repeat("a", 129),
		"411111111111", "4111111111111111", "4111-1111-1111-1111", "4111_1111_1111_1111", "id-4111111111111111-x",
	} {
		if got := Printable(s); got != "" {
			t.Errorf("%q is printed", got)
		}
	}
}

// TestStatusKinds proves that an error made by hand matches as a real one does.
func TestStatusKinds(t *testing.T) {
	for code := range 700 {
		var want error
		if code != 0 && (code < 200 || code > 299) {
			want = newClient(t, serve(status(code)), WithMaxRetries(0)).get(t.Context()).err()
		}
		byHand := Unwrap(&Failure{StatusCode: code})
		if byHand == nil != (want == nil) || want != nil && !errors.Is(want, byHand) {
			t.Errorf("%d: %v, want %v", code, byHand, want)
		}
	}
	if err := Unwrap(&Failure{StatusCode: 404, Err: io.EOF}); err != io.EOF {
		t.Error(err)
	}
}

// TestErrorBodies proves that the details of a failure are read where they are
// known, and never get in its way.
func TestErrorBodies(t *testing.T) {
	for _, test := range []struct{ body, code, message, details string }{
		{`{"error":{"code":"a","message":"b","details":{"c":1}}}`, "a", "b", `{"c":1}`},
		{` {"error":{"code":"a","message":"b","details":null}}`, "a", "b", ""},
		{`{"error":{"code":17,"message":null}}`, "17", "", ""},
		{`{"code":"a","message":"b","details":[1]}`, "a", "b", "[1]"},
		{`{"error":"text","code":"a","message":"b"}`, "a", "b", ""},
		{`{"code":"a","errorDetails":{"message":"b","field":"x"}}`, "a", "b", `{"message":"b","field":"x"}`},
		{`{"error":null}`, "", "", ""}, {`{"error":[]}`, "", "", ""}, {`{}`, "", "", ""}, {`[]`, "", "", ""}, {`null`, "", "", ""},
		{`"text"`, "", "", ""}, {`{"error":`, "", "", ""}, {"<html>", "", "", ""}, {"", "", "", ""}, {"\x00\xff", "", "", ""},
		{`{"error":{"code":{"deep":1},"message":["b"]}}`, `{"deep":1}`, `["b"]`, ""},
	} {
		network := roundTripper(func(*http.Request) (*http.Response, error) { return reply(400, test.body), nil })
		f := newClient(t, network).get(t.Context()).Failure
		if f.Code != test.code || f.Message != test.message || string(f.Details) != test.details || string(f.Body) != test.body {
			t.Errorf("%s: %q, %q, %s", test.body, f.Code, f.Message, f.Details)
		}
	}
}

// TestErrorBodyIsBounded proves that a failure holds no more than its share.
func TestErrorBodyIsBounded(t *testing.T) {
	for _, code := range []int{200, 400} {
		network := roundTripper(func(*http.Request) (*http.Response, error) {
			return reply(code, strings.Repeat("x", 1<<20), "Content-Type", "text/html"), nil
		})
		if f := newClient(t, network).get(t.Context()).Failure; len(f.Body) != maxErrorBody || cap(f.Body) > 2*maxErrorBody || f.StatusCode != code {
			t.Errorf("%d bytes in %d, status %d", len(f.Body), cap(f.Body), f.StatusCode)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	for header, want := range map[string]string{"X-Request-Id": "r-1", "X-Correlation-Id": "r-1", "Request-Id": "r-1", "X-Other": ""} {
		if got := newClient(t, serve(status(404, header, " r-1 "))).get(t.Context()).Failure.RequestID; got != want {
			t.Errorf("%s: %q", header, got)
		}
	}
}

// TestRepeatedSecretsAreConcealed proves that a service which repeats a credential
// or an id where codes and request ids stand gets none into an error or a log.
func TestRepeatedSecretsAreConcealed(t *testing.T) {
	for _, own := range []string{"token-canary", "header-canary", "account-canary", "1"} {
		for _, said := range []string{own, "x-" + own + "-y"} {
			if own == "1" && said != own {
				continue // too short to be told from any other text
			}
			var log bytes.Buffer
			network := roundTripper(func(*http.Request) (*http.Response, error) {
				return reply(400, `{"error":{"code":"`+said+`"}}`, "X-Request-Id", said), nil
			})
			call := write()
			call.Path = "/v1/account-canary/1"
			c := newClient(t, network, WithTokenSource(StaticToken("token-canary")), WithHeader("X-Key", "header-canary"),
				WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			r := c.Do(t.Context(), call, nil)
			if text := Describe("test", r.Failure) + log.String(); strings.Contains(text, "code "+said) || strings.Contains(text, "request id "+said) || strings.Contains(text, "canary") {
				t.Error(text)
			}
			if r.Failure.Code != "****" || r.RequestID != "****" {
				t.Errorf("%s: code %q, request id %q", said, r.Failure.Code, r.RequestID)
			}
		}
	}
}

// TestMalformed proves that what a body said does not get into an error.
func TestMalformed(t *testing.T) {
	var into struct{ Number uint8 }
	for body, want := range map[string]string{
		`{"Number":4111111111111111}`: "Number has another type", `{"Number":"secret"}`: "Number has another type",
		`{"Number":secret}`: "a syntax error at byte ", `{"Number":1`: "a syntax error at byte ",
	} {
		err := Malformed(json.Unmarshal([]byte(body), &into))
		if text := fmt.Sprintf("%+v", err); !strings.Contains(text, want) || strings.Contains(text, "secret") || strings.Contains(text, "4111") {
			t.Errorf("%s: %s", body, text)
		}
	}
	if text := Malformed(io.EOF).Error(); text != matrix[answerMalformed].words {
		t.Error(text)
	}
	network := serve(status(200))
	call := read()
	call.Decode = func([]byte) error { return Unusable("not an object") }
	r := newClient(t, network, WithRetryWait(0, 0)).Do(t.Context(), call, nil)
	check(t, r.err(), ErrBadResponse)
	if text := Describe("", r.Failure); !strings.Contains(text, "not an object") || network.requests() != 2 {
		t.Errorf("%s after %d requests", text, network.requests())
	}
}

func TestOutcomeNames(t *testing.T) {
	names := fmt.Sprint(OutcomeUnknown, ", ", OutcomeNotSent, ", ", OutcomeRejected, ", ", OutcomeAccepted, ", ", Outcome(9))
	if names != "unknown, not sent, rejected, accepted, unknown" {
		t.Error(names)
	}
}

// Only of a write does it matter whether an earlier attempt was processed.
func TestReadsLeaveNoDoubt(t *testing.T) {
	network := serve(status(502), status(404))
	r := newClient(t, network, WithRetryWait(0, 0)).get(t.Context())
	if text := Describe("test", r.Failure); strings.Contains(text, "earlier attempt") {
		t.Error(text)
	}
}
