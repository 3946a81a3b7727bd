package refundstest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// TestOutcomeAgreesWithTheRecord holds each fault's outcome against what the
// fake recorded.
func TestOutcomeAgreesWithTheRecord(t *testing.T) {
	tests := []struct {
		name     string
		fault    refundstest.Fault
		want     error
		recorded int
	}{
		{"ordinary", refundstest.Fault{}, nil, 1},
		{"drop before", refundstest.Fault{Drop: true}, refunds.ErrOutcomeUnknown, 0},
		{"drop after", refundstest.Fault{Drop: true, Process: true}, refunds.ErrOutcomeUnknown, 1},
		{"503", refundstest.Fault{Status: 503}, refunds.ErrOutcomeUnknown, 0},
		{"422", refundstest.Fault{Status: 422}, refunds.ErrRejected, 0},
		{"an empty 201 as of Django", refundstest.Fault{Status: 201, Body: new(""), Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}, nil, 1},
		{"a text as of Flask", refundstest.Fault{Body: new("OK"), Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}, nil, 1},
		{"JSON as of PHP", refundstest.Fault{Header: http.Header{"Content-Type": {"text/html"}}}, nil, 1},
		{"204", refundstest.Fault{Status: 204, Body: new("")}, nil, 1},
		{"a text without a label", refundstest.Fault{Body: new("OK"), Header: http.Header{"Content-Type": nil}}, nil, 1},
		{"a page", refundstest.Fault{Body: new("<html>"), Header: http.Header{"Content-Type": {"text/plain"}}}, refunds.ErrOutcomeUnknown, 1},
		{"a list of errors", refundstest.Fault{Body: new(`{"errors":["declined"]}`)}, refunds.ErrOutcomeUnknown, 1},
		{"a problem", refundstest.Fault{Header: http.Header{"Content-Type": {"application/problem+json"}}}, refunds.ErrOutcomeUnknown, 1},
		{"499, processed", refundstest.Fault{Status: 499, Process: true}, refunds.ErrOutcomeUnknown, 1},
		{"refused once", refundstest.Fault{Refuse: true}, nil, 1},
		{"429 once", refundstest.Fault{Status: 429}, nil, 1},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			fake := refundstest.NewServer(t)
			fake.Script(tt.fault)
			_, err := fake.Client().Submit(t.Context(), "acct", &refunds.Refund{RefundID: "rf_1"})
			if !errors.Is(err, tt.want) || (tt.want == nil) != (err == nil) {
				t.Errorf("%s: error = %v, want %v", tt.name, err, tt.want)
			}
			if n := len(fake.Recorded()); n != tt.recorded {
				t.Errorf("%s: recorded %d times, want %d", tt.name, n, tt.recorded)
			}
			if fake.Pending() != 0 {
				t.Errorf("%s: the fault was not met", tt.name)
			}
		})
	}
}

func TestSetResponse(t *testing.T) {
	fake := refundstest.NewServer(t)
	fake.SetResponse(202, "text/plain", "queued")
	receipt, err := fake.Client().Submit(t.Context(), "a/b", &refunds.Refund{RefundID: "rf_1"})
	if err != nil || receipt.StatusCode != 202 || string(receipt.Body) != "queued" || receipt.ContentType != "text/plain" {
		t.Errorf("receipt = %#v, %v", receipt, err)
	}
	if account := fake.Recorded()[0].AccountID; account != "a/b" {
		t.Errorf("account = %q", account)
	}
}

// TestSubmitted: what arrived can be compared with what was to be sent, also where the
// fake recorded nothing. Numbers in metadata stay exact.
func TestSubmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := refundstest.NewServer(t)
		fake.Script(refundstest.Fault{Status: 429}, refundstest.Fault{}, refundstest.Fault{Status: 422}, refundstest.Fault{Drop: true})
		client := fake.Client()
		for _, id := range []string{"rf_1", "rf_2", "rf_3"} {
			refund := &refunds.Refund{RefundID: id}
			refund.AdditionalData.Metadata = map[string]any{"n": json.Number("12345678901234567890")}
			_, _ = client.Submit(t.Context(), "acct", refund)
		}
		var ids []string
		for _, refund := range fake.Submitted() {
			ids = append(ids, fmt.Sprint(refund.RefundID, " ", refund.AdditionalData.Metadata["n"]))
		}
		const n = " 12345678901234567890"
		if !slices.Equal(ids, []string{"rf_1" + n, "rf_1" + n, "rf_2" + n}) || len(fake.Recorded()) != 1 {
			t.Errorf("submitted %q, recorded %d", ids, len(fake.Recorded()))
		}
	})
}
