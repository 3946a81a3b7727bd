package hostile_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/conformance/operations"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func replyWith(status int, header http.Header, body []byte) *http.Response {
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
}

// FuzzLocation redirects to wherever. Nothing leaves for another origin, nothing
// but a GET is sent again, and no error quotes the place.
func FuzzLocation(f *testing.F) {
	for _, seed := range []string{
		"", "/", "elsewhere", "//other.example/", "https://other.example/", "http://service.example/", "https://user:pw@service.example/",
		"https://service.example:443/", "https://SERVICE.example/", "https://service.example.other.example/", "\\\\other.example", "https:other.example",
		"https://service.example\\@other.example/", "https://[::1]/", "javascript:alert(1)", "?a=4111111111111111", "#", "%", "https://service.example%2f.other/", "\x00",
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			f.Add(status, seed)
		}
	}
	f.Fuzz(func(t *testing.T, status int, location string) {
		if status < 300 || status > 399 {
			t.Skip("no redirect")
		}
		var arrived []*http.Request
		network := transportFunc(func(r *http.Request) (*http.Response, error) {
			arrived = append(arrived, r)
			if r.Body != nil {
				r.Body.Close()
			}
			resp := replyWith(status, http.Header{"Location": {location}}, nil)
			resp.Request = r
			return resp, nil
		})
		list := operations.At(t, "https://service.example", bins.WithMaxRetries(0), bins.WithHTTPClient(&http.Client{Transport: network}))
		for _, e := range list {
			arrived = nil
			_, err := e.Call(t.Context())
			if err == nil || len(arrived) > 6 || e.Name != "download" && len(arrived) != 1 {
				t.Errorf("%s: %d requests, %v", e.Name, len(arrived), err)
			}
			for _, r := range arrived {
				if r.URL.Scheme != "https" || r.URL.Host != "service.example" || r.URL.User != nil || r.Header.Get("Referer") != "" {
					t.Errorf("%s: sent to %s with %v", e.Name, r.URL, r.Header)
				}
			}
			if len(location) > 12 && err != nil && strings.Contains(err.Error(), location) {
				t.Errorf("%s: %v quotes the location", e.Name, err)
			}
		}
	})
}

var longNumber = regexp.MustCompile(`[0-9]([-_ .:]?[0-9]){11,}`)

// FuzzAnswerHeaders answers with any values of the headers that the library
// reads. Each call returns its result or its own error, at once, and quotes none
// of what may be a card number.
func FuzzAnswerHeaders(f *testing.F) {
	for _, status := range []int{200, 204, 206, 401, 404, 429, 503} {
		f.Add(status, "application/json", "req-1", "1", "", "x")
		f.Add(status, "text/html; charset=\"", "4111111111111111", "Fri, 31 Dec 9999 23:59:59 GMT", "gzip", "W/\"")
		f.Add(status, ";;;", "4111-1111-1111-1111", "-1", "identity", "\"\"")
		f.Add(status, "", "\x7f\u00e4", "99999999999999999999", ",", "bytes 0-1/2")
	}
	f.Fuzz(func(t *testing.T, status int, contentType, id, retryAfter, encoding, other string) {
		if status < 200 || status > 599 {
			t.Skip("not an answer")
		}
		network := transportFunc(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil {
				r.Body.Close()
			}
			return replyWith(status, http.Header{
				"Content-Type": {contentType}, "X-Request-Id": {id}, "Retry-After": {retryAfter}, "Content-Encoding": {encoding},
				"Etag": {other}, "Last-Modified": {other, other}, "Date": {other}, "Content-Range": {other}, "Accept-Ranges": {other},
			}, []byte(`{"cards":[]}`)), nil
		})
		began := time.Now()
		for _, e := range operations.At(t, "https://service.example", bins.WithMaxRetries(0), bins.WithHTTPClient(&http.Client{Transport: network})) {
			v, err := e.Call(t.Context())
			if d, ok := v.(*updater.Download); ok && err == nil {
				d.Close()
			}
			if err == nil {
				continue
			}
			_, lookup := errors.AsType[*bins.Error](err)
			_, refund := errors.AsType[*refunds.OutcomeError](err)
			_, download := errors.AsType[*updater.Error](err)
			if map[string]bool{"lookup": lookup, "refund": refund, "download": download}[e.Name] == false {
				t.Errorf("%s: %T", e.Name, err)
			}
			if longNumber.MatchString(err.Error()) {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
	})
}
