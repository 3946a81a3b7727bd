package refunds_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// A told is what an error says for code to act on.
type told struct {
	outcome   refunds.Outcome
	condition string
	retryable bool
}

func tell(t *testing.T, err error) told {
	t.Helper()
	o, e := outcome(t, nil, err)
	return told{o.Outcome, e.Condition(), e.Retryable()}
}

// What can be submitted again by itself: what was not recorded, and may be accepted
// later as it is. An unknown outcome never is, and neither is a 409.
func TestConditionOfAStatus(t *testing.T) {
	const unknown, rejected = refunds.OutcomeUnknown, refunds.OutcomeRejected
	for status, want := range map[int]told{
		300: {unknown, "bad_response", false}, 301: {unknown, "redirect", false}, 302: {unknown, "redirect", false},
		303: {unknown, "redirect", false}, 304: {unknown, "bad_response", false}, 307: {rejected, "redirect", false}, 308: {rejected, "redirect", false},
		400: {rejected, "bad_request", false}, 401: {rejected, "unauthorized", false}, 402: {rejected, "bad_request", false},
		403: {rejected, "forbidden", false}, 404: {rejected, "not_found", false}, 405: {rejected, "bad_request", false},
		408: {unknown, "timeout", false}, 409: {rejected, "conflict", false}, 410: {rejected, "not_found", false},
		413: {rejected, "too_large", false}, 414: {rejected, "too_large", false}, 421: {rejected, "bad_request", true},
		422: {rejected, "bad_request", false}, 425: {rejected, "bad_request", true}, 429: {rejected, "rate_limited", true},
		431: {rejected, "too_large", false}, 500: {unknown, "server_error", false}, 501: {rejected, "server_error", false},
		502: {unknown, "server_error", false}, 503: {unknown, "server_error", false}, 504: {unknown, "server_error", false},
		505: {rejected, "server_error", false}, 599: {unknown, "server_error", false}, 600: {unknown, "bad_response", false},
	} {
		_, _, err := submit(t, record(), testkit.Answer(status, ""))
		if got := tell(t, err); got != want {
			t.Errorf("status %d: %+v, want %+v", status, got, want)
		}
		byHand := &refunds.Error{StatusCode: status}
		if byHand.Condition() != want.condition || byHand.Retryable() != want.retryable {
			t.Errorf("status %d, made by hand: %s, %v", status, byHand.Condition(), byHand.Retryable())
		}
	}
}

func TestConditionOfOtherFailures(t *testing.T) {
	const unknown, notSent = refunds.OutcomeUnknown, refunds.OutcomeNotSent
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	failing := func(context.Context) (string, error) { return "", errors.New("down") }
	for name, test := range map[string]struct {
		fault refundstest.Fault
		ctx   context.Context
		opts  []refunds.Option
		r     *refunds.Refund
		want  told
	}{
		"no argument":      {r: &refunds.Refund{}, want: told{notSent, "invalid_argument", false}},
		"a bad option":     {opts: []refunds.Option{refunds.WithMaxRetries(-1)}, want: told{notSent, "invalid_argument", false}},
		"an ended context": {ctx: ended, want: told{notSent, "canceled", true}},
		"no token":         {opts: []refunds.Option{refunds.WithTokenSource(refunds.TokenFunc(failing))}, want: told{notSent, "no_credential", true}},
		"the limiter":      {opts: []refunds.Option{refunds.WithLimiter(refusal{errors.New("full")})}, want: told{notSent, "local_limit", true}},
		"refused":          {fault: refundstest.Fault{Refuse: true}, want: told{notSent, "no_response", true}},
		"dropped before":   {fault: refundstest.Fault{DropBefore: true}, want: told{unknown, "no_response", false}},
		"dropped after":    {fault: refundstest.Fault{DropAfter: true}, want: told{unknown, "no_response", false}},
		"no response":      {fault: refundstest.Fault{HeaderDelay: time.Hour}, want: told{unknown, "timeout", false}},
		"a page":           {fault: refundstest.Fault{ContentType: "text/html"}, want: told{unknown, "bad_response", false}},
		"a check": {opts: []refunds.Option{refunds.WithReceiptCheck(func(*refunds.Receipt) error { return errors.New("no") })},
			want: told{unknown, "bad_response", false}},
		"a long wait": {fault: refundstest.Fault{Status: 429, RetryAfter: time.Hour}, want: told{refunds.OutcomeRejected, "rate_limited", true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := refundstest.NewServer(t)
			fake.ScriptFunc(func(refundstest.Request) refundstest.Fault { return test.fault })
			if test.fault.Refuse {
				fake.Script(test.fault, test.fault, test.fault)
			}
			r, ctx := record(), t.Context()
			if test.r != nil {
				r = test.r
			}
			if test.ctx != nil {
				ctx = test.ctx
			}
			_, err := fake.Client().Submit(ctx, "acct-1", r, test.opts...)
			if got := tell(t, err); got != test.want {
				t.Errorf("%s: %+v, want %+v", name, got, test.want)
			}
		})
	}
}

// A deadline in flight leaves the outcome unknown; after a 429 the refund may be
// submitted again, whatever ended the wait.
func TestConditionOfADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			status int
			want   told
		}{
			"in flight":   {0, told{refunds.OutcomeUnknown, "deadline_exceeded", false}},
			"after a 429": {429, told{refunds.OutcomeRejected, "rate_limited", true}},
			"after a 503": {503, told{refunds.OutcomeUnknown, "server_error", false}},
		} {
			mock := newMock(testkit.Answer(test.status, ""))
			if test.status == 0 {
				mock = newMock(testkit.Silent)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			_, err := newClient(t, mock, refunds.WithRetryWait(400*time.Millisecond, time.Second)).Submit(ctx, "acct-1", record())
			cancel()
			if got := tell(t, err); got != test.want {
				t.Errorf("%s: %+v, want %+v", name, got, test.want)
			}
		}
	})
}

// With the caller's word that the service removes duplicates, an unknown outcome
// stays one: it is the library that repeats it, and not the caller.
func TestNeverRetryableAfterAnUnknownOutcome(t *testing.T) {
	for _, last := range []int{400, 409, 429, 503} {
		mock := newMock(testkit.Answer(503, ""), testkit.Answer(last, ""))
		_, err := newClient(t, mock, refunds.WithResubmit()).Submit(t.Context(), "acct-1", record())
		if got := tell(t, err); got.outcome != refunds.OutcomeUnknown || got.retryable || strings.Contains(err.Error(), "after an earlier attempt that may have been processed") != (last < 500) {
			t.Errorf("503, then %d: %+v, %v", last, got, err)
		}
	}
	fake := refundstest.NewServer(t)
	fake.Script(refundstest.Fault{Status: 503}, refundstest.Fault{Refuse: true}, refundstest.Fault{Refuse: true})
	_, err := fake.Client(refunds.WithRetryWait(0, 0)).Submit(t.Context(), "acct-1", record(), refunds.WithResubmit())
	if got := tell(t, err); got.outcome != refunds.OutcomeUnknown || got.retryable || len(fake.Requests()) != 1 {
		t.Errorf("503, then no connection: %+v, %v, %d requests", got, err, len(fake.Requests()))
	}
}

func TestConditionInSubmitAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := refundstest.NewServer(t)
		fake.ScriptFunc(func(refundstest.Request) refundstest.Fault { return refundstest.Fault{Status: 503} })
		suspended := 0
		for s, err := range fake.Client().SubmitAll(t.Context(), refunds.Items("acct", numbered(30)), refunds.BulkOptions{GiveUpAfter: time.Second}) {
			if got := tell(t, err); errors.Is(err, refunds.ErrSuspended) {
				suspended++
				if want := (told{refunds.OutcomeNotSent, "suspended", true}); got != want {
					t.Errorf("%v: %+v", s, got)
				}
			} else if want := (told{refunds.OutcomeUnknown, "server_error", false}); got != want {
				t.Errorf("%v: %+v", s, got)
			}
		}
		if suspended == 0 {
			t.Error("it did not give up")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for s, err := range fake.Client(refunds.WithRateLimit(0.01, 1)).SubmitAll(ctx, refunds.Items("acct", numbered(30)), refunds.BulkOptions{}) {
			if e, _ := errors.AsType[*refunds.Error](err); s.Index < 0 && e.Retryable() {
				t.Errorf("the whole submission is to be made again: %v", err)
			}
		}
		ctx, cancel = context.WithCancel(t.Context())
		o := refunds.BulkOptions{Concurrency: 1, Progress: func(p refunds.BulkProgress) {
			if p.Done == 2 {
				cancel()
			}
		}}
		var end error
		for s, err := range refundstest.NewServer(t).Client().SubmitAll(ctx, refunds.Items("acct", numbered(30)), o) {
			if end = err; s.Index < 2 && s.Index >= 0 && err != nil {
				t.Error(err)
			}
		}
		if e, _ := errors.AsType[*refunds.Error](end); e.Condition() != "canceled" || e.Retryable() {
			t.Errorf("the end after two accepted refunds: %s, retryable %v", e.Condition(), e.Retryable())
		}
	})
}

func TestConditionOfAnErrorMadeByHand(t *testing.T) {
	for want, e := range map[told]*refunds.Error{
		{condition: "other"}:        {},
		{condition: "rate_limited"}: {Err: refunds.ErrRateLimited},
		{condition: "no_response"}:  {Err: &net.OpError{Err: refunds.ErrNoResponse}},
		{condition: "suspended"}:    {Err: errors.Join(refunds.ErrSuspended, refunds.ErrServer)},
	} {
		if got := (told{condition: e.Condition(), retryable: e.Retryable()}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if e.Message() != "" || e.Details() != nil || e.Body() != nil || e.Header() != nil {
			t.Errorf("%v holds a response", e)
		}
	}
}

// The header of the last response is there, and not printed.
func TestErrorKeepsTheHeader(t *testing.T) {
	_, _, err := submit(t, record(), testkit.Answer(422, "", "X-Quota", "canary-7", "Deprecation", "@1688169599"))
	_, e := outcome(t, nil, err)
	if e.Header().Get("X-Quota") != "canary-7" || e.Header().Get("Deprecation") == "" {
		t.Errorf("%v", e.Header())
	}
	testkit.NoLeakUnderAnyVerb(t, err, "canary-7")
	_, receipt, err := submit(t, record(), testkit.Answer(201, "", "Location", "canary-8"))
	if err != nil || receipt.Header().Get("Location") != "canary-8" || (&refunds.Receipt{}).Header() != nil {
		t.Errorf("%v, %v", receipt, err)
	}
	testkit.NoLeakUnderAnyVerb(t, *receipt, "canary-8")
	testkit.NoLeakUnderAnyVerb(t, receipt, "canary-8")
}
