package refunds_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
)

func broken(*http.Request) (*http.Response, error) { return nil, errors.New("broken") }

// Which responses are followed by another submission is proved by internal/conformance/matrix.
func TestResubmit(t *testing.T) {
	answer := func(status int) httpmock.Responder { return testkit.Answer(status, "", "X-Request-Id", "req-7") }
	tests := map[string]struct {
		answers  []httpmock.Responder
		requests int
		outcome  refunds.Outcome
		status   int // of the error
		evidence int // the status in the evidence
	}{
		"twice doubt, then accepted": {[]httpmock.Responder{answer(502), answer(504), answer(200)}, 3, refunds.OutcomeAccepted, 0, 0},
		// The refusal answers the second submission. The first may have been recorded.
		"doubt, then refused":              {[]httpmock.Responder{answer(503), answer(400)}, 2, refunds.OutcomeUnknown, 400, 503},
		"no response, then refused":        {[]httpmock.Responder{broken, answer(422)}, 2, refunds.OutcomeUnknown, 422, 0},
		"refused at once":                  {[]httpmock.Responder{answer(400), answer(200)}, 1, refunds.OutcomeRejected, 400, 400},
		"a limit, then doubt, then refuse": {[]httpmock.Responder{answer(429), answer(503), answer(400)}, 3, refunds.OutcomeUnknown, 400, 503},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mock := newMock(test.answers...)
			receipt, err := newClient(t, mock).Submit(t.Context(), "acct-1", record(), refunds.WithResubmit())
			requests := mock.Requests()
			if len(requests) != test.requests {
				t.Fatalf("%d requests, %v", len(requests), err)
			}
			for _, r := range requests {
				if r.Body != requests[0].Body {
					t.Errorf("sent %s, then %s", requests[0].Body, r.Body)
				}
			}
			if test.outcome == refunds.OutcomeAccepted {
				if err != nil || receipt.Attempts != test.requests {
					t.Errorf("%+v, %v", receipt, err)
				}
				return
			}
			o, e := outcome(t, receipt, err)
			if o.Outcome != test.outcome || e.StatusCode != test.status || o.Evidence.StatusCode != test.evidence || o.Attempts != test.requests {
				t.Errorf("%v: outcome %v, evidence %+v", err, o.Outcome, o.Evidence)
			}
		})
	}
}
