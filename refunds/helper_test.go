package refunds_test

import (
	"errors"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"

	"github.com/jarcoal/httpmock"
)

const path = "/v1/acct-1/refunds"

func newMock(answers ...httpmock.Responder) *testkit.Mock {
	return testkit.NewMock("POST", testkit.Base+path, answers...)
}

// newClient returns a client of the mock that does not wait.
func newClient(t testing.TB, mock *testkit.Mock, opts ...refunds.Option) *refunds.Client {
	t.Helper()
	opts = append([]refunds.Option{refunds.WithHTTPClient(mock.Client()), refunds.WithRetryWait(0, 0)}, opts...)
	client, err := refunds.NewClient(testkit.Base, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func record() *refunds.Refund {
	return &refunds.Refund{RefundID: "rf-canary", Amount: new(int64(10150)), Currency: "USD"}
}

// submit sends a record to a service with the answers.
func submit(t testing.TB, r *refunds.Refund, answers ...httpmock.Responder) (*testkit.Mock, *refunds.Receipt, error) {
	t.Helper()
	mock := newMock(answers...)
	receipt, err := newClient(t, mock).Submit(t.Context(), "acct-1", r)
	return mock, receipt, err
}

// outcome is the error of a submission: an *OutcomeError that holds an *Error
// and matches exactly one outcome.
func outcome(t testing.TB, receipt *refunds.Receipt, err error) (*refunds.OutcomeError, *refunds.Error) {
	t.Helper()
	outcome, ok := errors.AsType[*refunds.OutcomeError](err)
	failure, both := errors.AsType[*refunds.Error](err)
	if receipt != nil || !ok || !both {
		t.Fatalf("want nothing, an *OutcomeError and an *Error, got %v and %T %v", receipt, err, err)
	}
	if outcome.Err != failure || outcome.Attempts != failure.Attempts {
		t.Errorf("%v disagrees with its own error %v", outcome, failure)
	}
	matches := 0
	for _, condition := range []error{refunds.ErrNotSent, refunds.ErrRejected, refunds.ErrOutcomeUnknown} {
		if errors.Is(err, condition) {
			matches++
		}
	}
	if matches != 1 {
		t.Errorf("%v matches %d outcomes", err, matches)
	}
	return outcome, failure
}
