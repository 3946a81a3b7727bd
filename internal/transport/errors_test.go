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
	"testing/iotest"
	"testing/synctest"
	"time"
)

func TestDescribe(t *testing.T) {
	for want, f := range map[string]*Failure{
		"bins": {},
		"bins: lookup: refused (status 429 Too Many Requests, code slow, request id r-1, Retry-After: 3s, 4 attempts)": {
			Operation: "lookup", StatusCode: 429, Code: "slow", RequestID: "r-1", RetryAfter: 2600 * time.Millisecond, Attempts: 4, Err: NewError("refused")},
		"bins: lookup: no response (1 attempt)":         {Operation: "lookup", Attempts: 1, Err: fmt.Errorf("secret: %w", NewError("no response"))},
		"bins: lookup: failed":                          {Operation: "lookup", Err: errors.New("secret")},
		"bins: lookup (status 503 Service Unavailable)": {Operation: "lookup", StatusCode: 503},
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

func TestLoggable(t *testing.T) {
	for _, s := range []string{"a", "not_found", "E-1001", "req.1:2", "0af7651916cd43dd8448eb211c80319c", strings.Repeat("a", 128), "12345678901",
		"550e8400-e29b-41d4-a716-446655440000"} {
		if Loggable(s) != s {
			t.Errorf("%q is hidden", s)
		}
	}
	for _, s := range []string{
		"", "a b", "a\nb", "é", `"`, "a/b", "<a>", "a=b", strings.Repeat("a", 129),
		"411111111111", "4111111111111111", "4111-1111-1111-1111", "4111_1111_1111_1111", "id-4111111111111111-x",
		"41111111-1111-1111-a111-111111111111", "4111-111111111-111", "aaaaaaaa-1234-1234-8aaa-4111111111111111",
	} {
		if got := Loggable(s); got != "" {
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
		outcome := (&Failure{StatusCode: code}).Outcome()
		if byHand == nil != (want == nil) || want != nil && !errors.Is(want, byHand) || want == nil && outcome != OutcomeUnknown {
			t.Errorf("%d: %v, %v, want %v", code, byHand, outcome, want)
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
		{`{"error":{"code":{"deep":1},"message":["b"]}}`, "", `["b"]`, ""},
		{`{"code":"card 4111111111111111","message":"b"}`, "", "b", ""},
	} {
		network := roundTripper(func(*http.Request) (*http.Response, error) { return reply(400, test.body), nil })
		f := newClient(t, network).get(t.Context()).Failure
		if f.Code != test.code || f.Response().Message != test.message || string(f.Response().Details) != test.details || string(f.Response().Body) != test.body {
			t.Errorf("%s: %q, %q, %s", test.body, f.Code, f.Response().Message, f.Response().Details)
		}
	}
}

// TestErrorBodyIsBounded proves that a failure holds no more than its share.
func TestErrorBodyIsBounded(t *testing.T) {
	for _, code := range []int{200, 400} {
		network := roundTripper(func(*http.Request) (*http.Response, error) {
			return reply(code, strings.Repeat("x", 1<<20), "Content-Type", "text/html"), nil
		})
		if f := newClient(t, network).get(t.Context()).Failure; len(f.Response().Body) != maxErrorBody || cap(f.Response().Body) > 2*maxErrorBody || f.StatusCode != code {
			t.Errorf("%d bytes in %d, status %d", len(f.Response().Body), cap(f.Response().Body), f.StatusCode)
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

// TestEchoedSecretsAreRedacted proves that a service which repeats a credential or
// an id where codes and request ids stand gets none into an error or a log.
func TestEchoedSecretsAreRedacted(t *testing.T) {
	for _, own := range []string{"token-canary", "header-canary", "account-canary", "acct/canary", "1", "tok_4a", "TOK_4B"} {
		for _, said := range []string{own, "x-" + own + "-y", strings.ToUpper(own), strings.NewReplacer("-", ".", "_", "").Replace(own)} {
			if own == "1" && said != own {
				continue // too short to be told from any other text
			}
			var log bytes.Buffer
			network := roundTripper(func(*http.Request) (*http.Response, error) {
				return reply(400, `{"error":{"code":"`+said+`"}}`, "X-Request-Id", said), nil
			})
			call := write()
			call.Identifiers = func() []string { return []string{"", "account-canary", "acct/canary", "1", "tok_4a", "Tok_4b"} }
			c := newClient(t, network, WithTokenSource(StaticToken("token-canary")), WithHeader("X-Key", "header-canary"),
				WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			r := c.Do(t.Context(), call, nil)
			text := Describe("test", r.Failure) + log.String()
			if strings.Contains(text, "code ") || strings.Contains(text, "request id ") || strings.Contains(text, "request_id") {
				t.Errorf("%s: %s", said, text)
			}
			if r.Failure.Code != "" || r.RequestID != "" || r.Failure.RequestID != "" {
				t.Errorf("%s: code %q, request id %q", said, r.Failure.Code, r.RequestID)
			}
			if got := r.Failure.Response(); got.Header.Get("X-Request-Id") != said || !strings.Contains(string(got.Body), said) {
				t.Errorf("%s: what the service wrote is lost: %v %s", said, got.Header, got.Body)
			}
		}
	}
}

// TestCodesLikeThePathArePrinted proves that a word of the route or of a header that
// is no secret stays readable in a code.
func TestCodesLikeThePathArePrinted(t *testing.T) {
	for _, code := range []string{"download_not_ready", "identity_unknown", "application_json_required"} {
		network := roundTripper(func(*http.Request) (*http.Response, error) {
			return reply(400, `{"code":"`+code+`"}`), nil
		})
		call := write()
		call.Path, call.Identifiers = "/jobs/7/download", func() []string { return []string{"7"} }
		call.Headers = func(h http.Header) { JSONHeaders(h); h.Set("Accept-Encoding", "identity") }
		if r := newClient(t, network).Do(t.Context(), call, nil); r.Failure.Code != code {
			t.Errorf("%q is printed as %q", code, r.Failure.Code)
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
	if text := Malformed(io.EOF).Error(); text != malformedResponse.msg {
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
	call.Decode = func([]byte) error { return nil }
	if r := newClient(t, serve(func(*http.Request) (*http.Response, error) { return reply(200, "{}"), nil })).Do(t.Context(), call, nil); r.Failure != nil || r.Body != nil {
		t.Errorf("%q stays of what was decoded, %v", r.Body, r.err())
	}
}

func TestOutcomeNames(t *testing.T) {
	names := fmt.Sprint(OutcomeUnknown, ", ", OutcomeNotSent, ", ", OutcomeRejected, ", ", OutcomeAccepted, ", ", Outcome(9))
	if names != "unknown, not sent, rejected, accepted, unknown" {
		t.Error(names)
	}
}

// Only of a write does it matter whether an earlier attempt was processed.
func TestReadsAreNeverAmbiguous(t *testing.T) {
	network := serve(status(502), status(404))
	r := newClient(t, network, WithRetryWait(0, 0)).get(t.Context())
	if text := Describe("test", r.Failure); strings.Contains(text, "earlier attempt") {
		t.Error(text)
	}
}

// errorObjects are bodies, and whether they are the documented error object and
// nothing else.
var errorObjects = map[string]bool{
	`{"error":{"code":"job_not_ready","message":"m","details":{}}}`: true,
	" \n{ \"error\" :\t{\"code\":\"a\"}}\n":                         true,
	"\ufeff{\"error\":{\"code\":\"a\"}}":                            true, // a byte order mark
	"\ufeff\n{\"error\":{\"code\":\"a\"}}":                          true,
	"\ufeff{\"error\":{\"code\":\"a\"},\"records\":[]}":             false,
	`{"error":{"message":"m"}}`:                                     true,
	`{"error":{"code":17}}`:                                         true,
	`{"error":{"code":"a","trace_id":"x"}}`:                         true,
	`{"error":{"code":"a"},"records":[]}`:                           false,
	`{"records":[],"error":{"code":"a"}}`:                           false,
	`{"error":null}`:                                                false,
	`{"error":{}}`:                                                  false,
	`{"error":{"details":{}}}`:                                      false,
	`{"error":"text"}`:                                              false,
	`{"error":[{"code":"a"}]}`:                                      false,
	`{"errors":{"code":"a"}}`:                                       false,
	`{"ERROR":{"code":"a"}}`:                                        false,
	`[{"error":{"code":"a"}}]`:                                      false,
	`{"error":{"code":"a"}`:                                         false,
	"{\"error\":{\"code\":\"a\"}}\n{\"error\":{\"code\":\"b\"}}":    false,
	`{"error":{"code":"a","message":"` + strings.Repeat("m", maxErrorBody-35) + `"}}`: true,
	`{"error":{"code":"a","message":"` + strings.Repeat("m", maxErrorBody-34) + `"}}`: false,
	`{"error"`: false, `{`: false, ` `: false, "": false, "error,code\n1,2": false, "<?xml version='1.0'?><error/>": false,
	"\ufeff": false, "\xef": false, "\xef\xbb": false, "\xef\xbb{\"error\":{\"code\":\"a\"}}": false, "\ufefferror,code\n1,2": false,
}

// TestErrorObject proves that the documented error object is an error whatever
// its status, and that any other content reaches the caller unchanged.
func TestErrorObject(t *testing.T) {
	for body, isError := range errorObjects {
		for name, announced := range map[string]bool{"announced": true, "chunked": false} {
			network := func() *Client {
				return newClient(t, serve(func(*http.Request) (*http.Response, error) {
					resp := reply(200, "")
					resp.Body = io.NopCloser(iotest.OneByteReader(strings.NewReader(body)))
					if announced {
						resp.ContentLength = int64(len(body))
					}
					return resp, nil
				}), WithMaxResponseBytes(1<<20))
			}
			for kind, call := range map[string]*Call{"write": write(), "read": read(), "stream": streaming()} {
				r := network().Do(t.Context(), call, nil)
				if (r.Failure != nil) != isError {
					t.Errorf("%.40q, %s %s: %v", body, name, kind, r.err())
					continue
				}
				if isError {
					check(t, r.err(), ErrBadResponse)
					if f := r.Failure; f.StatusCode != 200 || f.Code+f.Response().Message == "" || string(f.Response().Body) != body || f.Attempts != 1 || r.Outcome != OutcomeUnknown {
						t.Errorf("%.40q, %s %s: %v, %+v", body, name, kind, r.Outcome, f)
					}
				} else if kind == "stream" {
					got, err := io.ReadAll(r.Stream)
					if r.Stream.Close(); string(got) != body || err != nil {
						t.Errorf("%.40q, %s: read %.40q, %v", body, name, got, err)
					}
				}
			}
		}
	}
	// A part of a content is no error, whatever it looks like.
	c := newClient(t, serve(func(*http.Request) (*http.Response, error) { return reply(206, `{"error":{"code":"a"}}`), nil }))
	call := streaming()
	call.Partial = true
	if r := c.Do(t.Context(), call, nil); r.Failure != nil {
		t.Error(r.err())
	}
}

// TestErrorObjectThatStalls proves that looking for it changes nothing about how
// a content breaks.
func TestErrorObjectThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, part := range []string{"", `{"error":{"code"`} {
			began := time.Now()
			network := roundTripper(func(r *http.Request) (*http.Response, error) {
				time.Sleep(5 * time.Second)
				return stalledBody(200, part)(r)
			})
			r := newClient(t, network).Do(t.Context(), streaming(), nil)
			if r.Failure != nil {
				t.Fatal(r.err())
			}
			_, err := io.ReadAll(r.Stream)
			check(t, err, ErrTimeout)
			if took := time.Since(began); took != 15*time.Second {
				t.Errorf("%q: after %v", part, took)
			}
			r.Stream.Close()
		}
	})
}
