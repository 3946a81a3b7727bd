package refunds_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// A verdict is what an error tells code to act on.
type verdict struct {
	outcome   refunds.Outcome
	condition string
	action    refunds.Action
}

// check also checks what holds for every error: a refund that may have been recorded is
// never submitted again at once, and Retryable agrees with the action.
func (want verdict) check(t *testing.T, name string, err error) {
	t.Helper()
	e := failed(t, nil, err)
	if got := (verdict{e.Outcome, e.Condition(), refunds.ActionOf(err)}); got != want {
		t.Errorf("%s: %v, want %v: %v", name, got, want, err)
	}
	if wrapped := refunds.ActionOf(fmt.Errorf("job 7: %w", err)); wrapped != want.action {
		t.Errorf("%s: wrapped: %v", name, wrapped)
	}
	if one := (&refunds.Submission{Outcome: e.Outcome, Err: err}); one.Action() != want.action {
		t.Errorf("%s: a submission says %v", name, one.Action())
	}
	if doubt := e.Outcome == unknown || want.condition == "conflict"; doubt != (want.action == find) {
		t.Errorf("%s: %v: %v", name, want.action, err)
	}
	if e.Retryable() != (want.action == resubmit) {
		t.Errorf("%s: %v with Retryable %t", name, want.action, e.Retryable())
	}
}

func TestVerdictOfEveryStatus(t *testing.T) {
	own := map[int]verdict{
		301: {unknown, "redirect", find}, 302: {unknown, "redirect", find}, 303: {unknown, "redirect", find},
		307: {rejected, "redirect", fixSetup}, 308: {rejected, "redirect", fixSetup},
		401: {rejected, "unauthorized", fixSetup},
		403: {rejected, "forbidden", fixSetup}, 407: {rejected, "forbidden", fixSetup},
		404: {rejected, "not_found", fixSetup}, 410: {rejected, "not_found", fixSetup},
		408: {unknown, "timeout", find}, 409: {rejected, "conflict", find},
		413: {rejected, "too_large", correct}, 414: {rejected, "too_large", correct}, 431: {rejected, "too_large", correct},
		406: {unknown, "bad_request", find}, 416: {unknown, "bad_request", find}, 421: {unknown, "bad_request", find},
		424: {unknown, "bad_request", find}, 425: {unknown, "bad_request", find}, 429: {unknown, "rate_limited", find},
		501: {rejected, "server_error", fixSetup}, 505: {rejected, "server_error", fixSetup},
	}
	for status := 100; status < 1000; status++ {
		want, known := own[status]
		switch {
		case known:
		case status/100 == 4 && http.StatusText(status) != "": // an RFC registers it
			want = verdict{rejected, "bad_request", correct}
		case status/100 == 5:
			want = verdict{unknown, "server_error", find}
		default:
			want = verdict{unknown, "bad_response", find}
		}
		client := newClient(t, newMock(testkit.Answer(status, "")), refunds.WithMaxRetries(0))
		receipt, err := client.Submit(t.Context(), "acct-1", record())
		if status/100 == 2 {
			one := &refunds.Submission{Outcome: refunds.OutcomeAccepted, Receipt: receipt}
			if err != nil || refunds.ActionOf(err) != refunds.ActionDone || one.Action() != refunds.ActionDone {
				t.Errorf("status %d: %v", status, err)
			}
			continue
		}
		want.check(t, fmt.Sprint(status), err)
		if named := strings.Contains(err.Error(), "WithRefusals"); named != (status == 429) {
			t.Errorf("%d: %v", status, err)
		}
		// A caller's test may make the same error by hand.
		want.check(t, fmt.Sprint(status, ", made by hand"), &refunds.Error{Outcome: want.outcome, StatusCode: status})
		// Under another status than 429, the signature of a limiter says nothing.
		if status == 429 {
			want = verdict{rejected, "rate_limited", resubmit}
		}
		client = newClient(t, newMock(testkit.Answer(status, "", "X-RateLimit-Remaining", "0")), refunds.WithMaxRetries(0))
		_, err = client.Submit(t.Context(), "acct-1", record())
		want.check(t, fmt.Sprint(status, ", signed"), err)
	}
}

// The caller's word makes a status a refusal. What passes by itself is retried, and nothing else.
func TestWithRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for status := 400; status < 600; status++ {
			submit := func(opts ...refunds.Option) (requests int, of refunds.Outcome, todo refunds.Action) {
				mock := newMock(testkit.Answer(status, ""))
				// The options of a client and of a call are added to each other.
				_, err := newClient(t, mock, append(opts, refunds.WithRefusals(599))...).Submit(t.Context(), "acct-1", record(), refunds.WithRefusals(598))
				e := failed(t, nil, err)
				return len(mock.Requests()), e.Outcome, refunds.ActionOf(err)
			}
			_, of, todo := submit()
			if of == unknown {
				todo = resubmit
			}
			requests := 1
			switch status {
			case 406, 416, 424: // another attempt gets it again
				todo = correct
			case 429, 502, 503, 504:
				requests = 3
			}
			if n, of, got := submit(refunds.WithRefusals(status, 400)); n != requests || of != rejected || got != todo {
				t.Errorf("%d: %v, %v after %d requests, want %v after %d", status, of, got, n, todo, requests)
			}
		}
	})
	for _, status := range []int{-1, 0, 200, 302, 399, 600} {
		client := newClient(t, newMock())
		if _, err := client.Submit(t.Context(), "acct-1", record(), refunds.WithRefusals(429, status)); !errors.Is(err, refunds.ErrInvalidArgument) {
			t.Errorf("%d: %v", status, err)
		}
		if _, err := refunds.NewClient(testkit.Base, refunds.WithRefusals(status)); !errors.Is(err, refunds.ErrInvalidArgument) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// What to do about other failures. internal/proof/conformance/matrix has all of them, with
// their outcomes.
func TestVerdictOfOtherFailures(t *testing.T) {
	own := errors.New("of the caller")
	dial := func(err error) []refunds.Option {
		return []refunds.Option{refunds.WithHTTPClient(&http.Client{Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }}})}
	}
	over := func(answer httpmock.Responder, opts ...refunds.Option) []refunds.Option {
		return append(opts, refunds.WithHTTPClient(newMock(answer).Client()))
	}
	ok, unauthorized := testkit.Answer(200, ""), testkit.Answer(401, "")
	source := func(tokens ...string) refunds.Option {
		return refunds.WithTokenSource(refunds.TokenFunc(func(context.Context) (string, error) {
			if len(tokens) == 0 {
				return "", own
			}
			token := tokens[0]
			tokens = tokens[1:]
			return token, nil
		}))
	}
	forgetful := refunds.WithTransport(func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			again, err := http.NewRequest(r.Method, r.URL.String(), r.Body)
			if err != nil {
				return nil, err
			}
			again.Header = r.Header
			return base.RoundTrip(again)
		})
	})
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(&refunds.Error{StatusCode: 409}) // as errgroup ends the others
	for name, test := range map[string]struct {
		opts []refunds.Option
		r    *refunds.Refund
		ctx  context.Context
		want verdict
	}{
		"no record":                 {r: &refunds.Refund{}, want: verdict{notSent, "invalid_argument", correct}},
		"a context that has ended":  {ctx: ended, want: verdict{notSent, "canceled", resubmit}},
		"connection refused":        {opts: dial(syscall.ECONNREFUSED), want: verdict{notSent, "no_response", resubmit}},
		"unknown host":              {opts: dial(&net.DNSError{IsNotFound: true}), want: verdict{notSent, "no_response", fixSetup}},
		"host lookup failed":        {opts: dial(&net.DNSError{IsTemporary: true}), want: verdict{notSent, "no_response", resubmit}},
		"untrusted":                 {opts: dial(x509.UnknownAuthorityError{}), want: verdict{notSent, "no_response", fixSetup}},
		"a wrapper's own context":   {opts: []refunds.Option{forgetful}, want: verdict{notSent, "invalid_argument", fixSetup}},
		"no response":               {opts: over(testkit.Silent), want: verdict{unknown, "timeout", find}},
		"a page":                    {opts: over(testkit.Answer(200, "<html>")), want: verdict{unknown, "bad_response", find}},
		"a redirect elsewhere":      {opts: over(testkit.Answer(307, "", "Location", "/v1/acct-1/refunds/rf_1")), want: verdict{unknown, "redirect", find}},
		"a redirect elsewhere, 308": {opts: over(testkit.Answer(308, "", "Location", "receipt")), want: verdict{unknown, "redirect", find}},
		"a redirect to a host":      {opts: over(testkit.Answer(307, "", "Location", "https://eu.refund.test/v1/acct-1/refunds")), want: verdict{rejected, "redirect", fixSetup}},
		"a redirect to a slash":     {opts: over(testkit.Answer(308, "", "Location", "/v1/acct-1/refunds/")), want: verdict{rejected, "redirect", fixSetup}},
		"an error, cut off":         {opts: over(testkit.Broken(200, `{"refund_id":"r","error":{"code`, io.ErrUnexpectedEOF)), want: verdict{unknown, "bad_response", find}},
		"a limiter that fails":      {opts: over(ok, refunds.WithLimiter(refusal(own))), want: verdict{notSent, "local_limit", resubmit}},
		"no token":                  {opts: over(ok, source()), want: verdict{notSent, "no_credential", resubmit}},
		"an empty token":            {opts: over(ok, source("")), want: verdict{notSent, "no_credential", fixSetup}},
		"refused, no other token":   {opts: over(unauthorized, source("a")), want: verdict{rejected, "no_credential", resubmit}},
		"refused, the same token":   {opts: over(unauthorized, source("a", "a", "a")), want: verdict{rejected, "unauthorized", fixSetup}},
		"refused, an empty token":   {opts: over(unauthorized, source("a", "")), want: verdict{rejected, "no_credential", fixSetup}},
		"a 429 until tomorrow":      {opts: over(testkit.Answer(429, "", "Retry-After", "86400")), want: verdict{rejected, "rate_limited", resubmit}},
		"a 503 for an hour":         {opts: over(testkit.Answer(503, "", "Retry-After", "3600")), want: verdict{unknown, "server_error", find}},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, err := refunds.NewClient(testkit.Base, append([]refunds.Option{refunds.WithRetryWait(0, 0)}, test.opts...)...)
			if err != nil {
				t.Fatal(name, err)
			}
			r, ctx := record(), t.Context()
			if test.r != nil {
				r = test.r
			}
			if test.ctx != nil {
				ctx = test.ctx
			}
			_, err = client.Submit(ctx, "acct-1", r)
			test.want.check(t, name, err)
		})
	}
}

// An error that did not come from a submission, or does not say what became of it, means to
// find out.
func TestActionOfAnotherError(t *testing.T) {
	for _, err := range []error{
		io.EOF, context.Canceled, refunds.ErrRejected, refunds.ErrNotSent, refunds.ErrRateLimited,
		&refunds.Error{StatusCode: 429}, &refunds.Error{},
		&refunds.Error{Outcome: notSent, Err: io.EOF},
		&refunds.Error{Outcome: refunds.OutcomeAccepted, StatusCode: 400},
		&refunds.Error{Outcome: rejected, StatusCode: 409},
		errors.Join(&refunds.Error{Outcome: rejected, StatusCode: 422}, refunds.ErrOutcomeUnknown),
	} {
		if got := refunds.ActionOf(err); got != find {
			t.Errorf("%T %v: %v", err, err, got)
		}
	}
	if empty := (refunds.Submission{}); empty.Action() != find {
		t.Errorf("a submission without a result: %v", empty.Action())
	}
	for action, text := range map[refunds.Action]string{find: "find out", refunds.ActionDone: "done",
		resubmit: "resubmit", correct: "correct", fixSetup: "fix setup", 9: "find out"} {
		if action.String() != text {
			t.Errorf("%d prints as %v", action, action)
		}
	}
}
