package transport

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
)

// utf16Of is a text in UTF-16 with a byte order mark, as some programs write it.
func utf16Of(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

// A response is what it contains, under any label: a page is no acceptance, no result and no
// content, and what is no page is none because of its label.
func TestPages(t *testing.T) {
	page := map[string]bool{
		"<!DOCTYPE html><title>x": true, "<html>": true, " \r\n\t<HTML lang=en>": true, "\ufeff<html>": true, "\ufeff \n<!doctype HTML>": true,
		"<!-- blocked --><b>": true, `<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN">`: true,
		`<?xml version="1.0"?> <html xmlns="http://www.w3.org/1999/xhtml">`: true, "<center><h1>403 Forbidden</h1></center>": true,
		"<body>": true, "<title>Login</title>": true, "<meta charset=utf-8>": true, "<p": false, "<script src=/x>": true,
		strings.Repeat(" \n", 3000) + "<html>": true, utf16Of("<html><body>"): true, utf16Of(" <!DOCTYPE html>"): true,

		"": false, "OK": false, " \r\n": false, "1": false, "true": false, `{"id":"rf"}`: false, "[]": false, "\ufeff{}": false, "a,b\n1,<html>\n": false,
		"<ok/>": false, "<ok></ok>": false, `<?xml version="1.0"?><response/>`: false, "<": false, "<>": false, "< html>": false, "<htmlish>": false,
		utf16Of("card,expiry\n"): false, "\xff\xfe\x00\x01": false, "-----BEGIN PGP MESSAGE-----": false,
	}
	for _, label := range []string{"", "application/json", "text/plain; charset=utf-8", "text/html; charset=utf-8", "TEXT/HTML", "application/xhtml+xml", "application/octet-stream", "text/csv"} {
		for body, isPage := range page {
			if strings.HasPrefix(strings.TrimLeft(body, blank), "<") && labelled(http.Header{"Content-Type": {label}}, "text/html", "application/xhtml+xml") {
				isPage = true
			}
			network := roundTripper(func(*http.Request) (*http.Response, error) {
				resp := reply(200, "", "Content-Type", label)
				resp.Body = io.NopCloser(iotest.HalfReader(strings.NewReader(body)))
				return resp, nil
			})
			c := newClient(t, network, WithMaxRetries(0))
			w, s := c.Do(t.Context(), write(), nil), c.Do(t.Context(), streaming(), nil)
			if isPage {
				if w.Outcome != OutcomeUnknown || !errors.Is(w.err(), ErrBadResponse) || !errors.Is(s.err(), ErrBadResponse) {
					t.Errorf("%q, %.60q: %v of a write, %v of a stream", label, body, w.Outcome, s.err())
				}
				continue
			}
			if w.Outcome != OutcomeAccepted || s.Failure != nil {
				t.Errorf("%q, %.60q: %v of a write, %v of a stream", label, body, w.Outcome, s.err())
				continue
			}
			if got, err := io.ReadAll(s.Stream); string(got) != body || err != nil {
				t.Errorf("%q, %.60q arrived as %.60q, %v", label, body, got, err)
			}
			s.Stream.Close()
		}
	}
}

// A problem of RFC 9457 accepts nothing, unless it says nothing.
func TestProblem(t *testing.T) {
	for label, isProblem := range map[string]bool{"application/problem+json": true, "Application/Problem+JSON; charset=utf-8": true, "application/json": false} {
		for body, says := range map[string]bool{`{"title":"wrong"}`: true, `{"type":"about:blank","status":422}`: true, "": false, " {} ": false, "null": false} {
			for _, status := range []int{200, 201, 202, 299} {
				network := roundTripper(func(*http.Request) (*http.Response, error) { return reply(status, body, "Content-Type", label), nil })
				r := newClient(t, network, WithMaxRetries(0)).Do(t.Context(), write(), nil)
				if accepted := r.Outcome == OutcomeAccepted; accepted != !(isProblem && says) {
					t.Errorf("%d %s %q: %v", status, label, body, r.Outcome)
				}
			}
		}
	}
}
