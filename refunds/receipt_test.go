package refunds_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// Neither the statuses nor the bodies of a success are documented, so every 2xx with any body
// is an acceptance.
func TestEverySuccessIsAccepted(t *testing.T) {
	for status, body := range map[int]string{200: "", 201: `{"id":`, 202: "[]", 204: "null", 299: "\x00\xff"} {
		_, r, err := submit(t, record(), testkit.Answer(status, body, "Content-Type", "application/x-any", "X-Request-Id", "req-7", "Location", "/7"))
		if err != nil {
			t.Fatalf("status %d, body %q: %v", status, body, err)
		}
		if r.StatusCode != status || string(r.Body) != body || r.BodyErr != nil || r.RequestID != "req-7" || r.ContentType != "application/x-any" ||
			r.Attempts != 1 || r.Header().Get("Location") != "/7" {
			t.Errorf("status %d, body %q: %#v", status, body, *r)
		}
	}
	if (&refunds.Receipt{}).Header() != nil {
		t.Error("a receipt made by hand has a header")
	}
}

// The status accepts the refund, even if the body does not arrive whole: a caller who saw an
// error would submit the refund again.
func TestIncompleteBodyIsStillAccepted(t *testing.T) {
	cut := errors.New("reset")
	long := strings.Repeat("x", 64<<10)
	for name, test := range map[string]struct {
		answer httpmock.Responder
		opts   []refunds.CallOption
		body   string
		cause  error
	}{
		"above the default": {testkit.Answer(200, long+"x"), nil, long, refunds.ErrBadResponse},
		"cut off":           {testkit.Broken(200, "12", cut), nil, "12", cut},
		"with WithResubmit": {testkit.Broken(200, "12", cut), []refunds.CallOption{refunds.WithResubmit()}, "12", cut},
	} {
		mock := newMock(test.answer)
		receipt, err := newClient(t, mock).Submit(t.Context(), "acct-1", record(), test.opts...)
		if err != nil || len(mock.Requests()) != 1 {
			t.Errorf("%s: %v after %d requests", name, err, len(mock.Requests()))
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
	check := refunds.WithReceiptCheck(func(r *refunds.Receipt) error {
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
		opts     []refunds.CallOption
		outcome  refunds.Outcome
		cause    error
		requests int
	}{
		"accepted by its body":   {testkit.Answer(200, "accepted"), nil, refunds.OutcomeAccepted, nil, 1},
		"accepted by its status": {testkit.Answer(201, ""), nil, refunds.OutcomeAccepted, nil, 1},
		"a proxy's text":         {testkit.Answer(200, "upstream timed out"), nil, unknown, unexpected, 1},
		"with WithResubmit":      {testkit.Answer(200, "{}"), []refunds.CallOption{refunds.WithResubmit()}, unknown, unexpected, 1},
		"cut off":                {testkit.Broken(200, "acc", io.ErrUnexpectedEOF), nil, unknown, refunds.ErrBadResponse, 1},
		"a rejection":            {testkit.Answer(422, "accepted"), nil, rejected, refunds.ErrBadRequest, 1},
		"not called for a 429":   {testkit.Limited, nil, rejected, refunds.ErrRateLimited, 3},
	} {
		mock, log := newMock(test.answer), new(strings.Builder)
		logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		receipt, err := newClient(t, mock, check, refunds.WithLogger(logger)).Submit(t.Context(), "acct-1", record(), test.opts...)
		if len(mock.Requests()) != test.requests {
			t.Errorf("%s: %d requests", name, len(mock.Requests()))
		}
		if !strings.Contains(log.String(), fmt.Sprint("outcome=", test.outcome)) {
			t.Errorf("%s: the log says %s", name, log)
		}
		if test.outcome == refunds.OutcomeAccepted {
			if err != nil || receipt == nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if e := failed(t, receipt, err); e.Outcome != test.outcome || !errors.Is(err, test.cause) {
			t.Errorf("%s: %v, %v", name, e.Outcome, err)
		}
		testkit.NoLeak(t, err, "canary", "upstream")
	}
}
