package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Conditions that callers test for with errors.Is. The packages expose these
// values under the same names.
var (
	ErrInvalidArgument  = errors.New("invalid argument")
	ErrLocalLimit       = errors.New("local limit")
	ErrCredential       = errors.New("no credential")
	ErrNoAnswer         = errors.New("no answer")
	ErrTimeout          = errors.New("attempt timeout")
	ErrBadRequest       = errors.New("bad request")
	ErrUnauthorized     = errors.New("unauthorized")
	ErrForbidden        = errors.New("forbidden")
	ErrNotFound         = errors.New("not found")
	ErrConflict         = errors.New("conflict")
	ErrTooLarge         = errors.New("request too large")
	ErrRateLimited      = errors.New("rate limited")
	ErrServer           = errors.New("server error")
	ErrRedirect         = errors.New("redirect")
	ErrBadResponse      = errors.New("bad response")
	ErrResponseTooLarge = errors.New("response too large")
)

// A Failure is why a call failed. It is exposed as bins.Error, refunds.Error
// and updater.Error, which convert from it and so cannot drift.
type Failure struct {
	Operation  string
	StatusCode int
	Code       string
	Message    string
	Details    json.RawMessage
	RequestID  string
	RetryAfter time.Duration
	Attempts   int
	Body       []byte
	Err        error
}

// A reason is a cause in words that are safe to print, and the errors that it
// stands for, whose own texts are not: a closure keeps them out of the reach of
// fmt.
type reason struct {
	words string
	is    func() []error
}

func because(words string, is ...error) *reason {
	return &reason{words, func() []error { return is }}
}

func (r *reason) Error() string   { return r.words }
func (r *reason) Unwrap() []error { return r.is() }

// Unwrap is the body of the Unwrap methods. An Error that a test made by hand
// still matches by its status.
func Unwrap(f *Failure) error {
	if f.Err == nil && f.StatusCode != 0 {
		return statusKind(f.StatusCode)
	}
	return f.Err
}

// statusKind is the sentinel of a status that is no success.
func statusKind(status int) error {
	switch status {
	case http.StatusForbidden, http.StatusProxyAuthRequired:
		return ErrForbidden
	case http.StatusNotFound, http.StatusGone:
		return ErrNotFound
	case http.StatusConflict:
		return ErrConflict
	}
	switch p := statusPoint(status); p {
	case success:
		return nil
	case requestRefused:
		return ErrBadRequest
	default:
		return matrix[p].kind
	}
}

// Describe is the text of an error. It quotes nothing that the service or the
// caller wrote, except a code and a request id of harmless form.
func Describe(pkg string, f *Failure) string {
	var b strings.Builder
	b.WriteString(pkg)
	if f.Operation != "" {
		fmt.Fprintf(&b, ": %s", f.Operation)
	}
	var known *reason
	switch err := Unwrap(f); {
	case errors.As(err, &known):
		fmt.Fprintf(&b, ": %s", known.words)
	case err != nil && f.StatusCode == 0:
		b.WriteString(": failed")
	}
	var facts []string
	if f.StatusCode != 0 {
		facts = append(facts, strings.TrimSpace(fmt.Sprintf("status %d %s", f.StatusCode, http.StatusText(f.StatusCode))))
	}
	if isPrintableToken(f.Code) {
		facts = append(facts, "code "+f.Code)
	}
	if isPrintableToken(f.RequestID) {
		facts = append(facts, "request id "+f.RequestID)
	}
	if f.RetryAfter > 0 {
		facts = append(facts, "retry after "+f.RetryAfter.Round(time.Second).String())
	}
	switch {
	case f.Attempts == 1:
		facts = append(facts, "1 attempt")
	case f.Attempts > 1:
		facts = append(facts, fmt.Sprintf("%d attempts", f.Attempts))
	}
	if len(facts) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(facts, ", "))
	}
	return b.String()
}

// Format is the body of the Format methods: whatever the verb, an error prints
// its text and never its fields.
func Format(state fmt.State, verb rune, text string) {
	if verb == 'q' {
		fmt.Fprintf(state, "%q", text)
		return
	}
	fmt.Fprint(state, text)
}

// Printable returns a code or an id of the service's if it may be printed, and
// else "".
func Printable(s string) string {
	if !isPrintableToken(s) {
		return ""
	}
	return s
}

const maxPrintedToken = 128

// isPrintableToken accepts what looks like a code or an id and cannot be a card
// number or the like: no run of digits as long as a card number.
func isPrintableToken(s string) bool {
	if s == "" || len(s) > maxPrintedToken {
		return false
	}
	digits := 0
	for _, r := range s {
		switch {
		case r >= '0' && r <= '9':
			if digits++; digits >= 12 {
				return false
			}
			continue
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			digits = 0
		case strings.ContainsRune("-_.:", r):
			// A separator inside a card number does not make it another thing.
		default:
			return false
		}
	}
	return true
}
