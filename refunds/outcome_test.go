package refunds_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
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
// that is a word of the interface is.
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

func TestOutcomeErrorSaysWhatToDo(t *testing.T) {
	_, _, rejected := submit(t, record(), testkit.Answer(422, ""))
	if want := "refunds: submit: refused (status 422 Unprocessable Entity, 1 attempt): the refund was rejected"; rejected.Error() != want {
		t.Errorf("the text is %q", rejected)
	}
	_, _, unknown := submit(t, record(), testkit.Answer(503, "", "Retry-After", "7"))
	if want := "refunds: submit: failed (status 503 Service Unavailable, retry after 7s, 1 attempt): the outcome is unknown, the refund may have been recorded"; unknown.Error() != want {
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
