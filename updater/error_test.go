package updater_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/updater"
)

// The body of an error is the service's word on it whatever the content type; an id of
// the caller's that it repeats is not told. How other bodies are read is proved by
// internal/transport, and what becomes of other statuses by internal/conformance/matrix.
func TestErrorOfAStatus(t *testing.T) {
	const body = `{"error":{"code":"job_gone","message":"about canary","details":{"state":"canary"}}}`
	mock, d, err := download(t, testkit.Answer(404, body, "Content-Type", "text/plain", "X-Request-Id", "req-7"))
	e := failure(t, d, err)
	if !errors.Is(e, updater.ErrNotFound) || e.StatusCode != 404 || e.RequestID != "req-7" || len(mock.Requests()) != 1 {
		t.Errorf("%v: status %d, request id %q", e, e.StatusCode, e.RequestID)
	}
	if e.Code != "job_gone" || e.Message() != "about canary" || string(e.Details()) != `{"state":"canary"}` || string(e.Body()) != body {
		t.Errorf("%q, %q, %s, %s", e.Code, e.Message(), e.Details(), e.Body())
	}
	if want := "updater: download: refused (status 404 Not Found, code job_gone, request id req-7, 1 attempt)"; e.Error() != want {
		t.Errorf("the text is %q", e)
	}
	testkit.NoLeakUnderAnyVerb(t, err, "canary")
	_, d, err = download(t, testkit.Answer(404, "", "X-Request-Id", "job-1"))
	if e := failure(t, d, err); e.RequestID != "" {
		t.Errorf("request id %q", e.RequestID)
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
