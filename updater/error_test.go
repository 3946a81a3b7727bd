package updater_test

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/updater"
)

// TestErrorOfAStatus: an error has the service's words and prints none of them but the code.
// internal/transport tests other bodies, and internal/proof/conformance/matrix other statuses.
func TestErrorOfAStatus(t *testing.T) {
	const body = `{"error":{"code":"job_gone","message":"about canary","details":{"state":"canary"}}}`
	mock, d, err := download(t, testkit.Answer(404, body, "Content-Type", "text/plain", "X-Request-Id", "req-7"))
	e := failure(t, d, err)
	if !errors.Is(e, updater.ErrNotFound) || e.StatusCode != 404 || e.RequestID != "req-7" || len(mock.Requests()) != 1 {
		t.Errorf("%v: status %d, request id %q", e, e.StatusCode, e.RequestID)
	}
	if e.Code != "job_gone" || e.Message() != "about canary" || string(e.Body()) != body {
		t.Errorf("%q, %q, %s", e.Code, e.Message(), e.Body())
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

var cardNumber = regexp.MustCompile(`[0-9]([-_ ]?[0-9]){11,}`)

// FuzzErrorBody: with any body, a 4xx fails with its status and the body.
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
		if cardNumber.MatchString(e.Error()) {
			t.Errorf("the text may hold a card number: %v", e)
		}
	})
}

// FuzzContent: any content arrives unchanged, unless it is an object that begins with an error, or a page.
func FuzzContent(f *testing.F) {
	for _, seed := range []string{
		`{"error":{"code":"a"}}`, `{"a":1,"error":{"details":[{}],"message":"m"},"b":[]}`, `{"error":{"code":"a"}}{"error":{"code":"b"}}`,
		`{"error":{"code":"`, `{"cards":[{"error":{"code":"a"}}]}`, "card,expiry\n", "\ufeff{", "{}", "[]", " ", "", "<p>", `{"error":{"":{}}}`, "{\"error\":{\"code\":\"\\ud800",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		_, d, err := download(t, testkit.Answer(200, string(content)))
		if err != nil {
			e := failure(t, d, err)
			if !errors.Is(e, updater.ErrBadResponse) || !bytes.ContainsAny(content, "{<") {
				t.Errorf("%q is %v", content, e)
			}
			return
		}
		defer d.Close()
		if got, err := io.ReadAll(d); err != nil || string(got) != string(content) {
			t.Errorf("%q arrived as %q, %v", content, got, err)
		}
	})
}
