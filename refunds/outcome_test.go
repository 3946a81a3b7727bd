package refunds_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// An error holds all of the response, and its text holds none of it. One that was made by hand
// holds none.
func TestErrorHoldsTheResponse(t *testing.T) {
	body := `{"error":{"code":"code_1","message":"about rf-canary of acct-1","details":{"id":"rf-canary"}}}`
	_, receipt, err := submit(t, record(), testkit.Answer(422, body, "X-Request-Id", "req-7", "X-Quota", "canary-7"))
	o, e := outcome(t, receipt, err)
	if o.Outcome != rejected || o.RefundID != "rf-canary" || o.Attempts != 1 || o.Evidence.StatusCode != 422 || e.StatusCode != 422 || e.RequestID != "req-7" || e.Code != "code_1" {
		t.Errorf("%+v, %+v", o, e)
	}
	if e.Message() != "about rf-canary of acct-1" || string(e.Body()) != body || e.Header().Get("X-Quota") != "canary-7" {
		t.Errorf("%q %s %v", e.Message(), e.Body(), e.Header())
	}
	testkit.NoLeak(t, err, "rf-canary", "acct-1", "about", "canary-7")
	made := &refunds.Error{Err: errors.Join(refunds.ErrSuspended, refunds.ErrServer)}
	if made.Condition() != "suspended" || made.Retryable() || made.Message() != "" || made.Body() != nil || made.Header() != nil {
		t.Errorf("%v holds a response", made)
	}
}

// The evidence is that of the attempt that decided the outcome, which need not be the last one.
func TestEvidenceOfADoubt(t *testing.T) {
	broken := func(*http.Request) (*http.Response, error) { return nil, errors.New("broken") }
	for name, test := range map[string]struct {
		answers  []httpmock.Responder
		outcome  refunds.Outcome
		status   int // of the error
		evidence int // the status in the evidence
	}{
		"refused":                       {[]httpmock.Responder{testkit.Answer(400, "")}, rejected, 400, 400},
		"failed, then refused":          {[]httpmock.Responder{testkit.Answer(503, ""), testkit.Answer(400, "")}, unknown, 400, 503},
		"no response, then refused":     {[]httpmock.Responder{broken, testkit.Answer(422, "")}, unknown, 422, 0},
		"limited, failed, then refused": {[]httpmock.Responder{testkit.Limited, testkit.Answer(503, ""), testkit.Answer(400, "")}, unknown, 400, 503},
	} {
		mock := newMock(test.answers...)
		receipt, err := newClient(t, mock).Submit(t.Context(), "acct-1", record(), refunds.WithResubmit())
		o, e := outcome(t, receipt, err)
		if o.Outcome != test.outcome || e.StatusCode != test.status || o.Evidence.StatusCode != test.evidence || o.Attempts != len(test.answers) || len(mock.Requests()) != o.Attempts {
			t.Errorf("%s: %v: %d requests, outcome %v, evidence %+v", name, err, len(mock.Requests()), o.Outcome, o.Evidence)
		}
	}
}

func TestOutcomeErrorMatchesExactlyOne(t *testing.T) {
	for made, want := range map[refunds.Outcome]error{
		notSent: refunds.ErrNotSent, rejected: refunds.ErrRejected, unknown: refunds.ErrOutcomeUnknown,
		refunds.OutcomeAccepted: refunds.ErrOutcomeUnknown, -1: refunds.ErrOutcomeUnknown, 99: refunds.ErrOutcomeUnknown,
	} {
		err := &refunds.OutcomeError{Outcome: made, Err: &refunds.Error{StatusCode: 500}}
		if outcome(t, nil, err); !errors.Is(err, want) {
			t.Errorf("outcome %d: %v", made, err)
		}
	}
}

// An error of another submission can reach this one as a cause: errgroup ends a context with
// it, and the caller's own code may return it. Its outcome is not this submission's.
func TestOutcomeOfAnotherSubmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, other := range []refunds.Outcome{notSent, rejected, unknown} {
			var failed error = &refunds.OutcomeError{Outcome: other, RefundID: "rf-other", Err: &refunds.Error{Operation: "submit", StatusCode: 400}}
			canceled, cancel := context.WithCancelCause(t.Context())
			cancel(failed)
			created := testkit.Answer(201, "")
			for name, test := range map[string]struct {
				ctx    context.Context
				answer httpmock.Responder
				opts   []refunds.Option
			}{
				"context": {canceled, created, nil},
				"check":   {t.Context(), created, []refunds.Option{refunds.WithReceiptCheck(func(*refunds.Receipt) error { return failed })}},
				"limiter": {t.Context(), created, []refunds.Option{refunds.WithLimiter(refusal(failed))}},
				"source": {t.Context(), created, []refunds.Option{
					refunds.WithTokenSource(refunds.TokenFunc(func(context.Context) (string, error) { return "", failed }))}},
				"response": {t.Context(), httpmock.NewErrorResponder(failed), nil},
			} {
				client := newClient(t, newMock(test.answer), test.opts...)
				_, err := client.Submit(test.ctx, "acct-1", record())
				if o, _ := outcome(t, nil, err); o.RefundID != "rf-canary" || !errors.Is(err, refunds.ErrBadRequest) || name == "check" && o.Err.(*refunds.Error).Cause() != failed {
					t.Errorf("%s: %v", name, err)
				}
				for one, end := range client.SubmitAll(test.ctx, refunds.Items("acct-1", slices.Values([]*refunds.Refund{record()})), refunds.BulkOptions{}) {
					if end == nil {
						outcome(t, nil, one.Err)
					} else if _, ok := errors.AsType[*refunds.OutcomeError](end); ok || outcomesOf(end) > 0 {
						t.Errorf("%s: the end has an outcome: %v", name, cmp.Or(end, one.Err))
					}
				}
			}
		}
	})
}

func TestTextOfAnOutcome(t *testing.T) {
	_, _, refused := submit(t, record(), testkit.Answer(422, ""))
	if want := "refunds: submit: refused (status 422 Unprocessable Entity, 1 attempt): the refund was rejected"; refused.Error() != want {
		t.Errorf("the text is %q", refused)
	}
	_, _, failed := submit(t, record(), testkit.Answer(503, "", "Retry-After", "7"))
	if want := "refunds: submit: failed (status 503 Service Unavailable, retry after 7s, 1 attempt): the outcome is unknown, the refund may have been recorded"; failed.Error() != want {
		t.Errorf("the text is %q", failed)
	}
	_, err := newClient(t, newMock(testkit.Answer(503, ""), testkit.Answer(400, ""))).Submit(t.Context(), "acct-1", record(), refunds.WithResubmit())
	if !strings.Contains(err.Error(), "after an earlier attempt that may have been processed") {
		t.Errorf("the text is %q", err)
	}
	if text := (&refunds.OutcomeError{Outcome: notSent}).Error(); text != "refunds: submit: the refund was not sent" {
		t.Errorf("the text of one without a cause is %q", text)
	}
	for o, want := range map[refunds.Outcome]string{unknown: "unknown", notSent: "not sent", rejected: "rejected", refunds.OutcomeAccepted: "accepted", 99: "unknown"} {
		if o.String() != want {
			t.Errorf("outcome %d is %q", o, o)
		}
	}
}
