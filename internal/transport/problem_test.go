package transport

import (
	"net/http"
	"testing"

	"github.com/carddata/carddata-go/internal/fault"
)

// A problem of RFC 9457 accepts nothing, whatever it says.
func TestProblem(t *testing.T) {
	for label, isProblem := range map[string]bool{"application/problem+json": true, "application/problem+xml": true, "Application/Problem+JSON; charset=utf-8": true, "application/json": false} {
		for _, body := range []string{`{"title":"wrong"}`, `{"type":"about:blank","status":422}`, "", " {} ", "null"} {
			for _, status := range []int{200, 201, 202, 299} {
				network := roundTripper(func(*http.Request) (*http.Response, error) { return reply(status, body, "Content-Type", label), nil })
				r := newClient(t, network, WithMaxRetries(0)).Do(t.Context(), write(), nil)
				if accepted := r.Outcome == fault.OutcomeAccepted; accepted == isProblem {
					t.Errorf("%d %s %q: %v", status, label, body, r.Outcome)
				}
			}
		}
	}
}
