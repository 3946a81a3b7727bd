package faults

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A spoiler stands between the library and the harness, and does what a broken library
// would do.
type spoiler func(next http.RoundTripper, r *http.Request) (*http.Response, error)

type spoiled struct {
	by   spoiler
	next http.RoundTripper
}

func (s spoiled) RoundTrip(r *http.Request) (*http.Response, error) { return s.by(s.next, r) }

// TestNotBlind proves that the schedules see what they are there to see: each of these
// breaks a promise, and is reported as that.
func TestNotBlind(t *testing.T) {
	change := func(status int, body func([]byte) []byte) spoiler {
		return func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err != nil || resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
				return resp, err
			}
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil {
				return nil, err
			}
			text = body(text)
			if status != 0 {
				resp.StatusCode = status
			}
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
			resp.Header.Del("Content-Length")
			return resp, nil
		}
	}
	same := func(text []byte) []byte { return text }
	for name, test := range map[string]struct {
		workload string
		by       spoiler
		seen     invariant
	}{
		"a refund is sent twice": {"submits", func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			again := r.Clone(r.Context())
			r.Body, again.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
			if resp, err := next.RoundTrip(again); err == nil {
				resp.Body.Close()
			}
			return next.RoundTrip(r)
		}, doubled},
		"an accepted refund is rejected":   {"submits", change(http.StatusBadRequest, same), outcome},
		"an accepted refund of many, too":  {"submitAll", change(http.StatusBadRequest, same), outcome},
		"an item is another card's":        {"lookups", change(0, func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(`"data"`), []byte(`"atad"`)) }), wrongAnswer},
		"a byte of a download has changed": {"downloads", change(0, func(text []byte) []byte { return bytes.Replace(text, []byte("0"), []byte("1"), 1) }), wrongBytes},
		"a call ends long after its deadline": {"lookups", func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			time.Sleep(time.Hour)
			return next.RoundTrip(r)
		}, overdue},
		"a body stays open": {"lookups", func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil {
				resp.Body = io.NopCloser(strings.NewReader("{}"))
			}
			return resp, err
		}, leaked},
	} {
		t.Run(name, func(t *testing.T) {
			*only = test.workload
			defer func() { *only = "" }()
			for seed := range uint64(300) {
				s := draw(seed)
				s.spoiled = test.by
				for _, v := range run(t, s).violations {
					if v.invariant == test.seen {
						t.Logf("seed %d: %v", seed, v)
						return
					}
				}
			}
			t.Errorf("no schedule reports it as %q", test.seen)
		})
	}
}
