package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"

	"github.com/jarcoal/httpmock"
)

// The outcome that the documentation of the package promises for each status.
// What becomes of every other status is proved by internal/conformance/matrix.
func TestOutcomeOfAStatus(t *testing.T) {
	for status, want := range map[int]refunds.Outcome{422: refunds.OutcomeRejected, 503: refunds.OutcomeUnknown} {
		body := `{"error":{"code":"code_1","message":"about rf-canary of acct-1","details":{"id":"rf-canary"}}}`
		mock, receipt, err := submit(t, record(), testkit.Answer(status, body, "X-Request-Id", "req-7"))
		o, e := outcome(t, receipt, err)
		if o.Outcome != want || o.RefundID != "rf-canary" || o.Evidence.StatusCode != status || e.StatusCode != status || e.RequestID != "req-7" {
			t.Errorf("status %d: %v %q, evidence %+v", status, o.Outcome, o.RefundID, o.Evidence)
		}
		if e.Code != "code_1" || e.Message() != "about rf-canary of acct-1" || string(e.Details()) != `{"id":"rf-canary"}` || string(e.Body()) != body {
			t.Errorf("status %d: %q %q %s %s", status, e.Code, e.Message(), e.Details(), e.Body())
		}
		if n := len(mock.Requests()); n != 1 || n != o.Attempts {
			t.Errorf("status %d: %d requests, %d attempts", status, n, o.Attempts)
		}
		testkit.NoLeak(t, err, "rf-canary", "acct-1", "about")
		testkit.NoLeakUnderAnyVerb(t, e, "rf-canary", "acct-1", "about")
		testkit.NoLeakUnderAnyVerb(t, *e, "rf-canary", "acct-1", "about")
	}
}

// A code or a request id that repeats an id of the record is not printed, and a code
// that is documented is.
func TestErrorRepeatsNoIDOfTheRecord(t *testing.T) {
	r := record()
	r.TransactionID, r.AdditionalData.OrderID = "tx-canary", "order-canary"
	r.SVCCodes.SVCRefundStatus = "amount_too_high"
	for _, said := range []string{"rf-canary", "unknown.rf-canary", "TX_CANARY", "order-canary-1"} {
		_, _, err := submit(t, r, testkit.Answer(400, `{"code":"`+said+`"}`, "X-Request-Id", said))
		_, e := outcome(t, nil, err)
		testkit.NoLeak(t, err, said)
		testkit.NoLeakUnderAnyVerb(t, e, said)
		if e.Code != "" || e.RequestID != "" || e.Header().Get("X-Request-Id") != said {
			t.Errorf("%s: code %q, request id %q", said, e.Code, e.RequestID)
		}
	}
	_, _, err := submit(t, r, testkit.Answer(400, `{"code":"amount_too_high"}`))
	if _, e := outcome(t, nil, err); e.Code != "amount_too_high" {
		t.Errorf("code %q", e.Code)
	}
}

func TestOutcomeWithoutAResponse(t *testing.T) {
	broken := errors.New("broken pipe of rf-canary")
	// A transport that reports no events leaves it open whether a byte left.
	mock, receipt, err := submit(t, record(), func(*http.Request) (*http.Response, error) { return nil, broken })
	o, e := outcome(t, receipt, err)
	if o.Outcome != refunds.OutcomeUnknown || !errors.Is(err, refunds.ErrNoResponse) || !errors.Is(e.Cause(), broken) || len(mock.Requests()) != 1 {
		t.Errorf("%v after %d requests", err, len(mock.Requests()))
	}
	testkit.NoLeak(t, err, "rf-canary")
}

func TestOutcomeErrorMatchesExactlyOne(t *testing.T) {
	for want, made := range map[error]refunds.Outcome{
		refunds.ErrNotSent: refunds.OutcomeNotSent, refunds.ErrRejected: refunds.OutcomeRejected, refunds.ErrOutcomeUnknown: refunds.OutcomeUnknown,
	} {
		inside := &refunds.Error{StatusCode: 500}
		err := error(&refunds.OutcomeError{Outcome: made, RefundID: "rf-canary", Err: inside})
		outcome(t, nil, err)
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
		testkit.NoLeak(t, err, "rf-canary")
		if text := string(testkit.Encoded(t, err)); text != `"`+err.Error()+`"` {
			t.Errorf("as JSON: %s", text)
		}
	}
	// An outcome that does not exist is one to be careful with, too.
	for _, made := range []refunds.Outcome{refunds.OutcomeAccepted, -1, 99} {
		if err := (&refunds.OutcomeError{Outcome: made}); !errors.Is(err, refunds.ErrOutcomeUnknown) || errors.Is(err, refunds.ErrNotSent) || errors.Is(err, refunds.ErrRejected) {
			t.Errorf("outcome %d", made)
		}
	}
}

type limiterFunc func(context.Context) error

func (f limiterFunc) Wait(ctx context.Context) error { return f(ctx) }

// TestOutcomeOfAnotherSubmission: wherever the error of another submission comes in, by
// errgroup or from the caller's own code, its outcome is not taken for this one's.
func TestOutcomeOfAnotherSubmission(t *testing.T) {
	for _, other := range []refunds.Outcome{refunds.OutcomeNotSent, refunds.OutcomeRejected, refunds.OutcomeUnknown} {
		var failed error = &refunds.OutcomeError{Outcome: other, RefundID: "rf-other", Err: &refunds.Error{Operation: "submit", StatusCode: 400}}
		canceled, cancel := context.WithCancelCause(t.Context())
		cancel(failed)
		check := refunds.WithReceiptCheck(func(*refunds.Receipt) error { return failed })
		limiter := refunds.WithLimiter(limiterFunc(func(context.Context) error { return failed }))
		source := refunds.WithTokenSource(refunds.TokenFunc(func(context.Context) (string, error) { return "", failed }))
		for name, test := range map[string]struct {
			ctx    context.Context
			answer httpmock.Responder
			opt    refunds.Option
		}{
			"context":  {canceled, testkit.Answer(201, ""), nil},
			"check":    {t.Context(), testkit.Answer(201, ""), check},
			"limiter":  {t.Context(), testkit.Answer(201, ""), limiter},
			"source":   {t.Context(), testkit.Answer(201, ""), source},
			"response": {t.Context(), httpmock.NewErrorResponder(failed), nil},
		} {
			client := newClient(t, newMock(test.answer), slices.DeleteFunc([]refunds.Option{test.opt}, func(o refunds.Option) bool { return o == nil })...)
			_, err := client.Submit(test.ctx, "acct-1", record())
			if o, _ := outcome(t, nil, err); o.RefundID != "rf-canary" || !errors.Is(err, refunds.ErrBadRequest) || name == "check" && o.Err.(*refunds.Error).Cause() != failed {
				t.Errorf("%s: %v", name, err)
			}
			for one, err := range client.SubmitAll(test.ctx, refunds.Items("acct-1", slices.Values([]*refunds.Refund{record()})), refunds.BulkOptions{}) {
				if one.Index >= 0 {
					outcome(t, nil, err)
				} else if _, ok := errors.AsType[*refunds.OutcomeError](err); ok || errors.Is(err, refunds.ErrNotSent) || errors.Is(err, refunds.ErrRejected) || errors.Is(err, refunds.ErrOutcomeUnknown) {
					t.Errorf("%s: %v has an outcome", name, err)
				}
			}
		}
	}
}

func TestOutcomeErrorSaysWhatToDo(t *testing.T) {
	_, _, rejected := submit(t, record(), testkit.Answer(422, ""))
	if want := "refunds: submit: refused (status 422 Unprocessable Entity, 1 attempt): the refund was rejected"; rejected.Error() != want {
		t.Errorf("the text is %q", rejected)
	}
	_, _, unknown := submit(t, record(), testkit.Answer(503, "", "Retry-After", "7"))
	if want := "refunds: submit: failed (status 503 Service Unavailable, Retry-After: 7s, 1 attempt): the outcome is unknown, the refund may have been recorded"; unknown.Error() != want {
		t.Errorf("the text is %q", unknown)
	}
	_, _, notSent := submit(t, &refunds.Refund{})
	if !strings.HasSuffix(notSent.Error(), ": the refund was not sent") {
		t.Errorf("the text is %q", notSent)
	}
	if text := (&refunds.OutcomeError{Outcome: refunds.OutcomeNotSent}).Error(); text != "refunds: submit: the refund was not sent" {
		t.Errorf("the text of one without a cause is %q", text)
	}
	for o, want := range map[refunds.Outcome]string{
		refunds.OutcomeUnknown: "unknown", refunds.OutcomeNotSent: "not sent", refunds.OutcomeRejected: "rejected", refunds.OutcomeAccepted: "accepted", 99: "unknown",
	} {
		if o.String() != want {
			t.Errorf("outcome %d is %q", o, o)
		}
	}
}

func TestErrorAsJSON(t *testing.T) {
	e := &refunds.Error{Operation: "submit", StatusCode: 429}
	testkit.NoLeak(t, *e, "canary")
	if text := string(testkit.Encoded(t, e)); text != `"`+e.Error()+`"` || text != fmt.Sprintf("%q", *e) || !errors.Is(e, refunds.ErrRateLimited) {
		t.Errorf("as JSON: %s", text)
	}
}

func TestAdditionalDataIsNotPrinted(t *testing.T) {
	data := refunds.AdditionalData{
		OrderID: "order-1", Description: "canary", MerchantAccountID: "canary", Metadata: map[string]any{"k": "canary"},
	}
	testkit.NoLeak(t, data, "canary")
	if text := fmt.Sprintf("%+v", data); text != "additional data of order order-1" {
		t.Error(text)
	}
}
