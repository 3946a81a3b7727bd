package hostile_test

import (
	"errors"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

var longNumber = regexp.MustCompile(`[0-9]([-_ .:]?[0-9]){11,}`)

// FuzzAnswerHeaders answers with any values of the headers that the library
// reads. Each call returns its result or its own error, at once, and quotes none
// of what may be a card number.
func FuzzAnswerHeaders(f *testing.F) {
	for _, status := range []int{200, 204, 206, 401, 404, 429, 503} {
		f.Add(status, "application/json", "req-1", "1", "", "x")
		f.Add(status, "text/html; charset=\"", "4111111111111111", "Fri, 31 Dec 9999 23:59:59 GMT", "gzip", "W/\"")
		f.Add(status, ";;;", "4111-1111-1111-1111", "-1", "identity", "\"\"")
		f.Add(status, "", "\x7f\u00e4", "99999999999999999999", ",", "bytes 0-1/2")
	}
	f.Fuzz(func(t *testing.T, status int, contentType, id, retryAfter, encoding, other string) {
		if status < 200 || status > 599 {
			t.Skip("not an answer")
		}
		network := operations.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil {
				r.Body.Close()
			}
			resp, err := testkit.Answer(status, `{"cards":[]}`, "Content-Type", contentType, "X-Request-Id", id, "Retry-After", retryAfter,
				"Content-Encoding", encoding, "Etag", other, "Last-Modified", other, "Last-Modified", other, "Date", other,
				"Content-Range", other, "Accept-Ranges", other)(r)
			resp.ContentLength = int64(len(`{"cards":[]}`))
			return resp, err
		})
		began := time.Now()
		for _, e := range operations.At(t, "https://service.example", bins.WithMaxRetries(0), bins.WithHTTPClient(&http.Client{Transport: network})) {
			v, err := e.Call(t.Context())
			if d, ok := v.(*updater.Download); ok && err == nil {
				d.Close()
			}
			if err == nil {
				continue
			}
			_, lookup := errors.AsType[*bins.Error](err)
			_, refund := errors.AsType[*refunds.OutcomeError](err)
			_, download := errors.AsType[*updater.Error](err)
			if map[string]bool{"lookup": lookup, "refund": refund, "download": download}[e.Name] == false {
				t.Errorf("%s: %T", e.Name, err)
			}
			if longNumber.MatchString(err.Error()) {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("took %v", took)
		}
	})
}
