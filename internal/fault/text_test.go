package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestDescribe(t *testing.T) {
	for want, f := range map[string]*Failure{
		"bins": {},
		"bins: lookup: refused (status 429 Too Many Requests, code slow, request id r-1, retry after 3s, 4 attempts)": {
			Operation: "lookup", StatusCode: 429, Code: "slow", RequestID: "r-1", RetryAfter: 2300 * time.Millisecond, Attempts: 4, Err: NewError("refused")},
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

// A code or an id of the service is printed only if it looks like one, and holds no card number.
func TestLoggable(t *testing.T) {
	for _, s := range []string{
		"a", "not_found", "E-1001", "req.1:2", "0af7651916cd43dd8448eb211c80319c", strings.Repeat("a", 128), "12345678901",
		"550e8400-e29b-41d4-a716-446655440000", // a UUID whose last digits fail the test
	} {
		if Loggable(s) != s {
			t.Errorf("%q is hidden", s)
		}
	}
	for _, s := range []string{
		"", "a b", "a\nb", "é", `"`, "a/b", "<a>", "a=b", strings.Repeat("a", 129),
		"411111111111", "4111111111111111", "4111-1111-1111-1111", "4111-1111-1111-1112", "4111_1111_1111_1111", "id:4111_1111.1111:1111", "id-4111111111111111-x",
		"41111111-1111-1111-a111-111111111111", "4111-111111111-111", "aaaaaaaa-1234-1234-8aaa-4111111111111111",
	} {
		if got := Loggable(s); got != "" {
			t.Errorf("%q is printed", got)
		}
	}
}

// No part of a malformed body gets into an error.
func TestMalformed(t *testing.T) {
	var into struct{ Number uint8 }
	for body, want := range map[string]string{
		`{"Number":4111111111111111}`: "not the documented JSON", `{"Number":"secret"}`: "not the documented JSON",
		`{"Number":secret}`: "a syntax error at byte ", `{"Number":1`: "a syntax error at byte ",
	} {
		err := Malformed(json.Unmarshal([]byte(body), &into))
		if text := fmt.Sprintf("%+v", err); !strings.Contains(text, want) || strings.Contains(text, "secret") || strings.Contains(text, "4111") {
			t.Errorf("%s: %s", body, text)
		}
	}
	if text := Malformed(io.EOF).Error(); text != MalformedResponse.Text {
		t.Error(text)
	}
}

func TestOutcomeNames(t *testing.T) {
	names := fmt.Sprint(OutcomeUnknown, ", ", OutcomeNotSent, ", ", OutcomeRejected, ", ", OutcomeAccepted, ", ", Outcome(9))
	if names != "unknown, not sent, rejected, accepted, unknown" {
		t.Error(names)
	}
}
