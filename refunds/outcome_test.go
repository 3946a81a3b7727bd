package refunds_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// An error holds all of the response, and its text holds none of it. One that was made by hand
// holds none.
func TestErrorHoldsTheResponse(t *testing.T) {
	body := `{"error":{"code":"code_1","message":"about rf-canary of acct-1","details":{"id":"rf-canary"}}}`
	_, receipt, err := submit(t, record(), testkit.Answer(422, body, "X-Request-Id", "req-7", "X-Quota", "canary-7"))
	e := failed(t, receipt, err)
	if e.Outcome != rejected || e.Attempts != 1 || e.Evidence.StatusCode != 422 || e.StatusCode != 422 || e.RequestID != "req-7" || e.Code != "code_1" {
		t.Errorf("%+v, %+v", e, e.Evidence)
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
		e := failed(t, receipt, err)
		if e.Outcome != test.outcome || e.StatusCode != test.status || e.Evidence.StatusCode != test.evidence || e.Attempts != len(test.answers) || len(mock.Requests()) != e.Attempts {
			t.Errorf("%s: %v: %d requests, outcome %v, evidence %+v", name, err, len(mock.Requests()), e.Outcome, e.Evidence)
		}
	}
}

func TestErrorMatchesOneOutcome(t *testing.T) {
	for made, want := range map[refunds.Outcome]error{
		notSent: refunds.ErrNotSent, rejected: refunds.ErrRejected, unknown: refunds.ErrOutcomeUnknown,
		refunds.OutcomeAccepted: refunds.ErrOutcomeUnknown, -1: refunds.ErrOutcomeUnknown, 99: refunds.ErrOutcomeUnknown,
	} {
		err := &refunds.Error{Outcome: made, StatusCode: 500}
		if failed(t, nil, err); !errors.Is(err, want) {
			t.Errorf("outcome %d: %v", made, err)
		}
	}
}

// An error of another submission can reach this one as a cause: errgroup ends a context with
// it, and the caller's own code may return it. Its outcome is not this submission's.
func TestOutcomeOfAnotherSubmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, outcome := range []refunds.Outcome{notSent, rejected, unknown} {
			var other error = &refunds.Error{Operation: "submit", StatusCode: 400, Outcome: outcome}
			canceled, cancel := context.WithCancelCause(t.Context())
			cancel(other)
			created := testkit.Answer(201, "")
			for name, test := range map[string]struct {
				ctx    context.Context
				answer httpmock.Responder
				opts   []refunds.Option
			}{
				"context": {canceled, created, nil},
				"check":   {t.Context(), created, []refunds.Option{refunds.WithReceiptCheck(func(*refunds.Receipt) error { return other })}},
				"limiter": {t.Context(), created, []refunds.Option{refunds.WithLimiter(refusal(other))}},
				"source": {t.Context(), created, []refunds.Option{
					refunds.WithTokenSource(refunds.TokenFunc(func(context.Context) (string, error) { return "", other }))}},
				"response": {t.Context(), httpmock.NewErrorResponder(other), nil},
			} {
				client := newClient(t, newMock(test.answer), test.opts...)
				_, err := client.Submit(test.ctx, "acct-1", record())
				if e := failed(t, nil, err); e == other || !errors.Is(err, refunds.ErrBadRequest) || name == "check" && e.Cause() != other {
					t.Errorf("%s: %v", name, err)
				}
				for one, end := range client.SubmitAll(test.ctx, refunds.Items("acct-1", slices.Values([]*refunds.Refund{record()})), refunds.BulkOptions{GiveUpAfter: time.Minute}) {
					if end == nil {
						failed(t, nil, one.Err)
					} else if outcomesOf(end) > 0 || refunds.ActionOf(end) != find {
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
	if text := (&refunds.Error{Outcome: notSent}).Error(); text != "refunds: the refund was not sent" {
		t.Errorf("the text of one without a cause is %q", text)
	}
	for o, want := range map[refunds.Outcome]string{unknown: "unknown", notSent: "not sent", rejected: "rejected", refunds.OutcomeAccepted: "accepted", 99: "unknown"} {
		if o.String() != want {
			t.Errorf("outcome %d is %q", o, o)
		}
	}
}

// Logs and JSON have the texts, which can be read again.
func TestMarshalsAsText(t *testing.T) {
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "action", refunds.ActionFixSetup, "outcome", refunds.OutcomeNotSent)
	if !strings.Contains(log.String(), `"action":"fix setup","outcome":"not sent"`) {
		t.Error(log.String())
	}
	type row struct {
		Action  refunds.Action
		Outcome refunds.Outcome
	}
	for action := refunds.ActionFindOut; action <= refunds.ActionFixSetup; action++ {
		for outcome := refunds.OutcomeUnknown; outcome <= refunds.OutcomeAccepted; outcome++ {
			text, err := json.Marshal(row{action, outcome})
			var read row
			if err == nil {
				err = json.Unmarshal(text, &read)
			}
			if err != nil || read != (row{action, outcome}) {
				t.Errorf("%s: %+v, %v", text, read, err)
			}
		}
	}
	read := row{refunds.ActionDone, refunds.OutcomeAccepted}
	for _, text := range []string{`{"Action":"perhaps"}`, `{"Outcome":"4111111111111111"}`} {
		if err := json.Unmarshal([]byte(text), &read); err == nil || strings.Contains(err.Error(), "4111") || read.Action != refunds.ActionDone {
			t.Errorf("%s: %+v, %v", text, read, err)
		}
	}
}
