package refunds_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// Neither statuses nor bodies of a success are documented, so that every 2xx
// with any body is an acceptance.
func TestEverySuccessIsAccepted(t *testing.T) {
	for _, status := range []int{200, 201, 202, 204, 206, 299} {
		for name, body := range map[string]string{
			"empty": "", "null": "null", "JSON": `{"id":"4111111111111111"}`, "array": "[]", "text": "thank you", "broken": `{"id":`, "bytes": "\x00\xff",
		} {
			t.Run(fmt.Sprint(status, " ", name), func(t *testing.T) {
				mock, receipt, err := submit(t, record(), testkit.Answer(status, body, "Content-Type", "application/x-any", "X-Request-Id", "req-7"))
				if err != nil {
					t.Fatal(err)
				}
				if receipt.StatusCode != status || string(receipt.Body) != body || receipt.BodyErr != nil || receipt.RequestID != "req-7" ||
					receipt.ContentType != "application/x-any" || receipt.Attempts != 1 || len(mock.Requests()) != 1 {
					t.Errorf("status %d, body %q (%v), request id %q, type %q, %d attempts", receipt.StatusCode, receipt.Body,
						receipt.BodyErr, receipt.RequestID, receipt.ContentType, receipt.Attempts)
				}
			})
		}
	}
}

// The refund is accepted once the status says so, even if the body does not
// arrive whole: a caller who saw an error would send it again.
func TestIncompleteBodyIsStillAccepted(t *testing.T) {
	cut := errors.New("reset")
	for name, test := range map[string]struct {
		mock  *testkit.Mock
		opts  []refunds.Option
		body  string
		cause error
	}{
		"huge":           {newMock(testkit.Answer(200, strings.Repeat("x", 64<<10+1))), nil, strings.Repeat("x", 64<<10), refunds.ErrResponseTooLarge},
		"above the cap":  {newMock(testkit.Answer(201, "12345")), []refunds.Option{refunds.WithMaxResponseBytes(4)}, "1234", refunds.ErrResponseTooLarge},
		"cut off":        {newMock(testkit.Broken(200, "12", cut)), nil, "12", cut},
		"ended early":    {newMock(testkit.Broken(200, "12", io.ErrUnexpectedEOF)), nil, "12", refunds.ErrBadResponse},
		"just the cap":   {newMock(testkit.Answer(200, "1234")), []refunds.Option{refunds.WithMaxResponseBytes(4)}, "1234", nil},
		"without a cap":  {newMock(testkit.Answer(200, strings.Repeat("x", 100<<10))), []refunds.Option{refunds.WithMaxResponseBytes(0)}, strings.Repeat("x", 100<<10), nil},
		"resubmit given": {newMock(testkit.Broken(200, "12", cut)), []refunds.Option{refunds.WithResubmit()}, "12", cut},
	} {
		receipt, err := newClient(t, test.mock).Submit(t.Context(), "acct-1", record(), test.opts...)
		if err != nil || len(test.mock.Requests()) != 1 {
			t.Errorf("%s: %v after %d requests", name, err, len(test.mock.Requests()))
			continue
		}
		if !errors.Is(receipt.BodyErr, test.cause) || string(receipt.Body) != test.body {
			t.Errorf("%s: %d bytes of body, %v", name, len(receipt.Body), receipt.BodyErr)
		}
	}
}

func TestPageIsNoAcceptance(t *testing.T) {
	for name, answer := range map[string][]string{
		"by header": {`{"ok":true}`, "Content-Type", "text/html; charset=utf-8"},
		"by body":   {"<!doctype html><title>rf-canary</title>", "Content-Type", "application/json"},
		"xhtml":     {"", "Content-Type", "application/xhtml+xml"},
	} {
		mock, receipt, err := submit(t, record(), testkit.Answer(200, answer[0], answer[1:]...))
		o, e := outcome(t, receipt, err)
		if !errors.Is(err, refunds.ErrOutcomeUnknown) || !errors.Is(err, refunds.ErrBadResponse) || len(mock.Requests()) != 1 ||
			e.StatusCode != 200 || o.Evidence.StatusCode != 200 {
			t.Errorf("%s: %v after %d requests", name, err, len(mock.Requests()))
		}
		testkit.NoLeak(t, err, "rf-canary")
	}
}

func TestReceiptSaysWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		mock := newMock(testkit.Answer(429, "", "Retry-After", "2"), testkit.Answer(200, ""))
		receipt, err := newClient(t, mock).Submit(t.Context(), "acct-1", record())
		if err != nil {
			t.Fatal(err)
		}
		if after := receipt.AcceptedAt.Sub(began); after < 2*time.Second || !receipt.AcceptedAt.Equal(time.Now()) {
			t.Errorf("accepted %s after the begin", after)
		}
	})
}

func TestReceiptPrintsNoBody(t *testing.T) {
	_, receipt, err := submit(t, record(), testkit.Answer(202, "canary 4111111111111111", "X-Request-Id", "req-7"))
	if err != nil {
		t.Fatal(err)
	}
	testkit.NoLeak(t, receipt, "canary", "4111111111111111")
	testkit.NoLeak(t, *receipt, "canary", "4111111111111111")
	printed := testkit.Printed(receipt)
	if printed["%v"] != "refund accepted (status 202)" || !strings.Contains(printed["slog text"], "value.status=202 value.request_id=req-7") {
		t.Errorf("printed as %q and %q", printed["%v"], printed["slog text"])
	}
}
