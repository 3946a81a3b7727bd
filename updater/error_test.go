package updater_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/updater"
)

// What the service says of an error is told, and printed by nothing. All shapes of it are
// proved by internal/transport.
func TestErrorBodies(t *testing.T) {
	type object struct{ code, message, details string }
	tests := map[string]struct {
		body string
		want object
	}{
		"documented":         {`{"error":{"code":"job_not_ready","message":"come back","details":{"state":"running"}}}`, object{"job_not_ready", "come back", `{"state":"running"}`}},
		"details absent":     {`{"error":{"code":"c","message":"m"}}`, object{"c", "m", ""}},
		"details empty":      {`{"error":{"code":"c","message":"m","details":{}}}`, object{"c", "m", "{}"}},
		"details text":       {`{"error":{"code":"c","message":"m","details":"d"}}`, object{"c", "m", `"d"`}},
		"code is null":       {`{"error":{"code":null,"message":null,"details":null}}`, object{}},
		"message is odd":     {`{"error":{"code":"c","message":{"en":"m"}}}`, object{"c", `{"en":"m"}`, ""}},
		"empty object":       {`{"error":{}}`, object{}},
		"more members":       {`{"trace":"t","error":{"code":"c","status":400}}`, object{"c", "", ""}},
		"message alone":      {`{"message":"m"}`, object{"", "m", ""}},
		"spaces around":      {"\n {\"error\":{\"code\":\"c\"}} \n", object{"c", "", ""}},
		"HTML":               {"<html><body>canary 4111111111111111</body></html>", object{}},
		"a card number":      {`{"error":{"code":"4111111111111111","message":"canary"}}`, object{"", "canary", ""}},
		"another object":     {`{"canary":"4111111111111111"}`, object{}},
		"message is escaped": {`{"error":{"message":"\u00e9\n"}}`, object{"", "é\n", ""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mock, d, err := download(t, testkit.Answer(400, test.body, "X-Request-Id", "req-7"))
			e := failure(t, d, err)
			if got := (object{e.Code, e.Message(), string(e.Details())}); got != test.want {
				t.Errorf("decoded as %q", got)
			}
			if !errors.Is(e, updater.ErrBadRequest) || e.StatusCode != 400 || e.RequestID != "req-7" || string(e.Body()) != test.body || len(mock.Requests()) != 1 {
				t.Errorf("%v: status %d, request id %q, body %q", e, e.StatusCode, e.RequestID, e.Body())
			}
			if !strings.Contains(e.Error(), "status 400 Bad Request") || !strings.Contains(e.Error(), "req-7") {
				t.Errorf("the text is %q", e)
			}
			testkit.NoLeakUnderAnyVerb(t, err, "canary", "4111111111111111")
		})
	}
}

// The body of an error is the service's word on it whatever the status and the
// content type; an id of the caller's that it repeats is not.
// What becomes of every other status is proved by internal/conformance/matrix.
func TestConditionOfAStatus(t *testing.T) {
	_, d, err := download(t, testkit.Answer(404, `{"error":{"code":"c","message":"m"}}`, "Content-Type", "text/plain", "X-Request-Id", "job-1"))
	if e := failure(t, d, err); !errors.Is(e, updater.ErrNotFound) || e.StatusCode != 404 || e.RequestID != "" || e.Code != "c" || e.Message() != "m" {
		t.Errorf("%v, %q, %q", e, e.Code, e.Message())
	}
}

// Only a 200 is a result. A 202 would be saved as an empty file of card data,
// and a 206 as a whole one.
func TestOtherSuccessesAreNoContent(t *testing.T) {
	for _, status := range []int{201, 202, 203, 204, 205, 206, 299, 304} {
		mock, d, err := download(t, testkit.Answer(status, "canary", "X-Request-Id", "req-7"))
		e := failure(t, d, err)
		if !errors.Is(e, updater.ErrBadResponse) || e.StatusCode != status || e.RequestID != "req-7" || len(mock.Requests()) != 1 {
			t.Errorf("status %d: %v after %d requests", status, e, len(mock.Requests()))
		}
		testkit.NoLeak(t, e, "canary")
	}
}

func TestErrorAsJSON(t *testing.T) {
	e := &updater.Error{Operation: "download", StatusCode: 409}
	testkit.NoLeak(t, *e, "canary")
	if text := string(testkit.Encoded(t, e)); text != `"`+e.Error()+`"` || !errors.Is(e, updater.ErrConflict) {
		t.Errorf("as JSON: %s", text)
	}
}

var cardNumber = regexp.MustCompile(`[0-9]([-_ ]?[0-9]){11,}`)

// Whatever an error's body holds, the call fails in the same way.
func FuzzErrorBody(f *testing.F) {
	for _, seed := range []string{
		`{"error":{"code":"job_not_ready","message":"m","details":{"a":[1]}}}`, `{"message":"m"}`, `{"code":7,"errorDetails":{"message":"m"}}`,
		`{"error":null,"ERROR":{"code":{}}}`, `{"error":`, "", "<p>", "{}x", `{"code":"4111-1111-1111-1111"}`,
	} {
		f.Add(400, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 400 || status > 499 {
			t.Skip("not refused for good")
		}
		mock := newMock(testkit.Answer(status, string(body)))
		d, err := newClient(t, mock, updater.WithMaxRetries(0)).Download(t.Context(), "job-1")
		e := failure(t, d, err)
		if e.StatusCode != status || string(e.Body()) != string(body[:min(len(body), 64<<10)]) {
			t.Errorf("status %d, body %q", e.StatusCode, e.Body())
		}
		if len(e.Details()) > 0 && !strings.Contains(string(body), string(e.Details())) {
			t.Errorf("details %q are not of the body", e.Details())
		}
		if cardNumber.MatchString(e.Error()) {
			t.Errorf("the text may hold a card number: %v", e)
		}
	})
}
