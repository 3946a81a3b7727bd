package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/fault"
)

// The code and the message of an error are read from the known shapes of a body. Any other
// body does no harm.
func TestErrorBodies(t *testing.T) {
	for _, test := range []struct{ body, code, message string }{
		{`{"error":{"code":"a","message":"b","details":{"c":1}}}`, "a", "b"},
		{` {"error":{"code":"a","message":"b","details":null}}`, "a", "b"},
		{`{"error":{"code":17,"message":null}}`, "17", ""},
		{`{"code":"a","message":"b","details":[1]}`, "a", "b"},
		{`{"error":"text","code":"a","message":"b"}`, "a", "b"},
		{`{"code":"a","errorDetails":{"message":"b","field":"x"}}`, "a", "b"},
		{`{"error":null}`, "", ""}, {`{"error":[]}`, "", ""}, {`{}`, "", ""}, {`[]`, "", ""}, {`null`, "", ""},
		{`"text"`, "", ""}, {`{"error":`, "", ""}, {"<html>", "", ""}, {"", "", ""}, {"\x00\xff", "", ""},
		{`{"error":{"code":{"deep":1},"message":["b"]}}`, "", `["b"]`},
		{`{"code":"card 4111111111111111","message":"b"}`, "", "b"},
	} {
		f := newClient(t, serve(says(400, test.body))).get(t.Context()).Failure
		if f.Code != test.code || f.Response().Message != test.message || string(f.Response().Body) != test.body {
			t.Errorf("%s: %q, %q", test.body, f.Code, f.Response().Message)
		}
	}
}

// The body of a response that was not accepted stays as it was while other calls go on.
func TestErrorKeepsItsBody(t *testing.T) {
	const length = 3000
	for name, bad := range map[string]string{"not decoded": strings.Repeat("A", length), "a page": "<html>" + strings.Repeat("A", length)} {
		body := bad
		c := newClient(t, serve(func(*http.Request) (*http.Response, error) { return reply(200, body), nil }))
		call := func() Result {
			call := read()
			call.Decode = func([]byte) error {
				if body == bad {
					return errors.New("not the documented body")
				}
				return nil
			}
			return c.do(t.Context(), call, WithMaxRetries(0))
		}
		failed := call()
		body = strings.Repeat("B", length)
		for range 100 { // a pool may forget what it was given
			call()
		}
		if failed.Failure == nil || string(failed.Body) != bad {
			t.Errorf("%s: the body became %.20q…", name, failed.Body)
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

// A code is printed, even if a word of it is also in the route or in a header that is no
// secret. A code or a request id that repeats a token, the value of another header, an id of the caller or a part of
// the base URL is not printed, and a short id must match as a whole.
func TestCodesAreNotEchoes(t *testing.T) {
	for code, printed := range map[string]bool{
		"download_not_ready": true, "identity_unknown": true, "application_json_required": true, "e7": true,
		"7": false, "tok_4a": false, "TOK.4A": false, "no_account-canary_here": false,
		"token-canary": false, "not_TOKEN.canary_here": false, "key-canary": false, "tenant-canary": false,
	} {
		network := serve(says(400, `{"code":"`+code+`"}`, "X-Request-Id", code))
		call := write()
		call.Path, call.Identifiers = "/jobs/7/download", func() []string { return []string{"", "7", "tok_4a", "account-canary"} }
		call.Headers = func(h http.Header) { JSONHeaders(h); h.Set("Accept-Encoding", "identity") }
		c, err := New(testService(), "https://service.test/tenant-canary", []Option{through(network), WithTokenSource(auth.Static("token-canary")), WithHeader("X-Key", "key-canary")})
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if printed {
			want = code
		}
		if r := c.Do(t.Context(), call, nil); r.Failure.Code != want || r.Failure.RequestID != want {
			t.Errorf("%q is printed as the code %q and the request id %q", code, r.Failure.Code, r.Failure.RequestID)
		}
	}
}

// Body and label of a response reach the judgement of internal/fault, for each kind of call.
func TestLabelIsJudged(t *testing.T) {
	for label, isPage := range map[string]bool{"text/html": true, "text/xml": false} {
		for _, call := range []*Call{write(), read(), streaming()} {
			r := newClient(t, serve(says(200, "<p>", "Content-Type", label)), WithMaxRetries(0)).Do(t.Context(), call, nil)
			if judged := r.Failure != nil && r.Failure.Err.Error() == fault.HTMLResponse.Text; judged != isPage {
				t.Errorf("%s under %s: %v", call.Operation, label, r.err())
			}
			if r.Stream != nil {
				r.Stream.Close()
			}
		}
	}
}

// Of the calls with a 200, a stream takes the documented error object for an error, with other
// members and of any size. A write takes any error that says something for one, among any
// members or in broken JSON. Other content reaches the caller unchanged.
func TestErrorObject(t *testing.T) {
	const large = fault.MaxErrorBody - 34
	for body, isError := range map[string]struct{ inStream, inWrite bool }{
		`{"error":{"code":"job_not_ready","message":"m","details":{}}}`:         {true, true},
		" \n{ \"error\" :\t{\"code\":\"a\"}}\n":                                 {true, true},
		"\ufeff\n{\"error\":{\"code\":\"a\"}}":                                  {true, true}, // a byte order mark
		`{"error":{"message":"m"}}`:                                             {true, true},
		`{"error":{"code":17}}`:                                                 {true, true},
		`{"id":1,"error":{"code":"a"},"records":[]}`:                            {true, true},
		`{"error":{"code":"a","message":"` + strings.Repeat("m", large) + `"}}`: {true, true},
		`{"error":{"code":"a"}`:                                                 {true, true},
		`{"records":[],"error":{"code":"a"}}`:                                   {false, true},
		`{"error":{"details":{}}}`:                                              {false, true},
		`{"error":"text"}`:                                                      {false, true},
		`{"error":[{"code":"a"}]}`:                                              {false, true},
		`{"id":1,"error":"tex`:                                                  {false, true},
		`{"error":{"code":"a"}}{"ok":true}`:                                     {false, true},
		"{\"error\":{\"code\":\"a\"}}\n{\"error\":{}}":                          {false, true},
		`{"error"`:                             {false, true},
		"\xef\xbb{\"error\":{\"code\":\"a\"}}": {false, true},
		`{"error":null}`:                       {},
		`{"error":{}}`:                         {},
		`{"errors":{"code":"a"}}`:              {false, true},
		`{"errors":["a"]}`:                     {false, true},
		`{"errors":"a"}`:                       {false, true},
		`{"id":1,"errors":[{"co`:               {false, true},
		`{"ERROR":{"code":"a"}}`:               {false, true},
		`{"errors":[]}`:                        {},
		`{"errors":{ },"error":""}`:            {},
		`{"error":false,"errors":null}`:        {},
		`{"error":0}`:                          {},
		`{"error":-0.0,"errors":0e5}`:          {},
		`{"error":" \t\u00a0\n","errors":""}`:  {},
		`{"success":false}`:                    {},
		`[{"error":{"code":"a"}}]`:             {},
		"error,code\n1,2":                      {},
		`{`:                                    {},
		"\ufeff":                               {},
		"":                                     {},
	} {
		network := roundTripper(func(*http.Request) (*http.Response, error) {
			resp := reply(200, "")
			resp.Body = io.NopCloser(strings.NewReader(body))
			if len(body) < 1000 {
				resp.Body = io.NopCloser(iotest.OneByteReader(strings.NewReader(body)))
			}
			return resp, nil
		})
		c := newClient(t, network, func(s *Settings) { s.MaxResponseBytes = 1 << 20 })
		w, s := c.Do(t.Context(), write(), nil), c.Do(t.Context(), streaming(), nil)
		if (w.Failure != nil) != isError.inWrite || (s.Failure != nil) != isError.inStream {
			t.Errorf("%.40q: %v of a write, %v of a stream", body, w.err(), s.err())
		}
		if f := w.Failure; f != nil && (!errors.Is(w.err(), fault.ErrBadResponse) || w.Outcome != fault.OutcomeUnknown || f.StatusCode != 200 || f.Attempts != 1) {
			t.Errorf("%.40q: %v, %+v", body, w.Outcome, f)
		}
		if f := s.Failure; f != nil {
			if held := f.Response(); string(held.Body) != body[:min(len(body), fault.MaxErrorBody)] || json.Valid(held.Body) && f.Code+held.Message == "" {
				t.Errorf("%.40q: %+v, %.40q", body, f, held.Body)
			}
			continue
		}
		got, err := io.ReadAll(s.Stream)
		if s.Stream.Close(); string(got) != body || err != nil {
			t.Errorf("%.40q: read %.40q, %v", body, got, err)
		}
	}
	// A part of a content is no error, even if it looks like one.
	c := newClient(t, serve(says(206, `{"error":{"code":"a"}}`)))
	call := streaming()
	call.Partial = true
	if r := c.Do(t.Context(), call, nil); r.Failure != nil {
		t.Error(r.err())
	}
}

// The search for an error object does not change how a content breaks.
func TestErrorObjectThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, part := range []string{"", `{"error":{"code"`, `{"error":{"code":"a`} {
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
			check(t, err, fault.ErrTimeout)
			if took := time.Since(began); took != 15*time.Second {
				t.Errorf("%q: after %v", part, took)
			}
			r.Stream.Close()
		}
	})
}

// The error of the caller's own code is the Cause, and is not printed.
func TestCause(t *testing.T) {
	cause := errors.New("dial canary.internal:443")
	for says, options := range map[string][]Option{
		"its own error is the Cause": {through(roundTripper(func(*http.Request) (*http.Response, error) { return nil, cause }))},
		"the token source failed":    {WithTokenSource(auth.Func(func(context.Context) (string, error) { return "", cause }))},
		"refused to send":            {WithLimiter(limiterFunc(func(context.Context) error { return cause }))},
		"before sending failed":      {WithBeforeSend(func(context.Context) error { return cause })},
		"no connection was made":     {around(func(http.RoundTripper, *http.Request) (*http.Response, error) { return nil, cause })},
	} {
		c, err := New(Service{Name: "test"}, "https://service.test", options)
		if err != nil {
			t.Fatal(err)
		}
		f := c.Do(t.Context(), write(), nil).Failure
		if f.Cause() != cause || !errors.Is(f.Err, cause) {
			t.Errorf("%s: caused by %v", says, f.Cause())
		}
		var text strings.Builder
		text.WriteString(fault.Describe("test", f))
		for _, verb := range []string{"%v", "%+v", "%#v", "%w", "%p", "%!"} {
			text.WriteString(fmt.Sprintf(verb, f) + fmt.Sprintf(verb, *f))
		}
		if strings.Contains(text.String(), "canary") || !strings.Contains(text.String(), says) {
			t.Error(text.String())
		}
	}
	// The Cause is what kept the last retry from being sent.
	turns := 0
	once := limiterFunc(func(context.Context) error {
		if turns++; turns > 1 {
			return cause
		}
		return nil
	})
	if f := newClient(t, serve(status(503)), WithLimiter(once)).get(t.Context()).Failure; f.Cause() != cause || f.StatusCode != 503 || f.Attempts != 1 {
		t.Errorf("%v is caused by %v", f.Err, f.Cause())
	}
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	c := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) { return nil, refused }), WithMaxRetries(0))
	if f := c.get(t.Context()).Failure; f.Cause() != refused || !strings.Contains(fault.Describe("test", f), ": "+syscall.ECONNREFUSED.Error()) {
		t.Error(fault.Describe("test", f), f.Cause())
	}
	if (&fault.Failure{}).Cause() != nil || (&fault.Failure{Err: fault.Invalid("x")}).Cause() != nil {
		t.Error("an error without a cause has one")
	}
	// The last error of a chain may be one of the library.
	call, unusable := read(), fault.Unusable("x")
	call.Decode = func([]byte) error { return unusable }
	if f := newClient(t, serve(status(200)), WithMaxRetries(0)).Do(t.Context(), call, nil).Failure; f.Cause() != unusable {
		t.Errorf("%v is caused by %v", f.Err, f.Cause())
	}
}
