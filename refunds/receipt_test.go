package refunds_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"

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

// A 2xx that the caller's check refuses is an unknown outcome, and never retried.
func TestReceiptCheck(t *testing.T) {
	unexpected := errors.New("not the service's words: canary")
	created := refunds.WithReceiptCheck(func(r *refunds.Receipt) error {
		if r.StatusCode == 201 || string(r.Body) == "accepted" {
			return nil
		}
		if r.BodyErr != nil {
			return r.BodyErr
		}
		return unexpected
	})
	for name, test := range map[string]struct {
		answer   httpmock.Responder
		opts     []refunds.Option
		outcome  refunds.Outcome
		cause    error
		requests int
	}{
		"accepted":                  {testkit.Answer(200, "accepted"), nil, refunds.OutcomeAccepted, nil, 1},
		"accepted by its status":    {testkit.Answer(201, ""), nil, refunds.OutcomeAccepted, nil, 1},
		"a proxy's error page":      {testkit.Answer(200, `{"error":"upstream timed out"}`), nil, refunds.OutcomeUnknown, unexpected, 1},
		"with WithResubmit":         {testkit.Answer(200, `{}`), []refunds.Option{refunds.WithResubmit()}, refunds.OutcomeUnknown, unexpected, 1},
		"cut off":                   {testkit.Broken(200, "acc", io.ErrUnexpectedEOF), nil, refunds.OutcomeUnknown, refunds.ErrBadResponse, 1},
		"too long":                  {testkit.Answer(202, "12345"), []refunds.Option{refunds.WithMaxResponseBytes(4)}, refunds.OutcomeUnknown, refunds.ErrResponseTooLarge, 1},
		"an HTML page":              {testkit.Answer(201, "<html>"), nil, refunds.OutcomeUnknown, refunds.ErrBadResponse, 1},
		"a rejection":               {testkit.Answer(422, "accepted"), nil, refunds.OutcomeRejected, refunds.ErrBadRequest, 1},
		"turned off for the call":   {testkit.Answer(200, "{}"), []refunds.Option{refunds.WithReceiptCheck(nil)}, refunds.OutcomeAccepted, nil, 1},
		"a limit, then not refused": {testkit.Answer(429, ""), nil, refunds.OutcomeRejected, refunds.ErrRateLimited, 3},
	} {
		mock, log := newMock(test.answer), new(strings.Builder)
		logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		receipt, err := newClient(t, mock, created, refunds.WithLogger(logger)).Submit(t.Context(), "acct-1", record(), test.opts...)
		if len(mock.Requests()) != test.requests {
			t.Errorf("%s: %d requests", name, len(mock.Requests()))
		}
		if !strings.Contains(log.String(), fmt.Sprintf("outcome=%q", test.outcome)) && !strings.Contains(log.String(), fmt.Sprint("outcome=", test.outcome)) {
			t.Errorf("%s: the log says %s", name, log)
		}
		if test.outcome == refunds.OutcomeAccepted {
			if err != nil || receipt == nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if o, _ := outcome(t, receipt, err); o.Outcome != test.outcome || !errors.Is(err, test.cause) {
			t.Errorf("%s: %v, %v", name, o.Outcome, err)
		}
		testkit.NoLeak(t, err, "canary", "upstream")
	}
}

// A panic of the check reaches the caller, in SubmitAll as an unknown outcome too.
func TestReceiptCheckThatPanics(t *testing.T) {
	s := &service{}
	client := s.client(t, refunds.WithReceiptCheck(func(*refunds.Receipt) error { panic("on purpose") }))
	func() {
		defer func() {
			if recover() != "on purpose" {
				t.Error("the panic is lost")
			}
		}()
		_, _ = client.Submit(t.Context(), "acct-1", record())
	}()
	heard, panicked := heardOf(t, client, 1, refunds.BulkOptions{Abandoned: func(_ refunds.Submission, err error) {
		if e, _ := errors.AsType[*refunds.Error](err); e.Retryable() {
			t.Errorf("%v is to be submitted again", err)
		}
	}})
	if panicked != "on purpose" || len(heard) != 1 || heard["re-0"] != refunds.OutcomeUnknown {
		t.Errorf("%v, %v", panicked, heard)
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
