package fault

import (
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// TestBodyThatCannotBeRead: a body that arrived whole but cannot be decompressed is malformed, and
// retried once. One that broke off is retried as a broken connection is.
func TestBodyThatCannotBeRead(t *testing.T) {
	for err, want := range map[error]*Verdict{
		gzip.ErrHeader: MalformedResponse, gzip.ErrChecksum: MalformedResponse, flate.CorruptInputError(7): MalformedResponse,
		io.ErrUnexpectedEOF: TruncatedResponse, ErrOversize: oversized,
	} {
		if got := JudgeBody(t.Context(), Request{}, http.Header{}, []byte("{"), err); got != want {
			t.Errorf("%v: %s", err, got.Text)
		}
		if wrapped := fmt.Errorf("read: %w", err); want == MalformedResponse && JudgeBody(t.Context(), Request{}, http.Header{}, []byte("{"), wrapped) != want {
			t.Errorf("%v", wrapped)
		}
	}
}

// TestProblem: a problem of RFC 9457 accepts nothing, whatever it says.
func TestProblem(t *testing.T) {
	for label, want := range map[string]*Verdict{
		"application/problem+json": ErrorObject, "application/problem+xml": ErrorObject, "Application/Problem+JSON; charset=utf-8": ErrorObject, "application/json": Success,
	} {
		for _, body := range []string{`{"title":"wrong"}`, `{"type":"about:blank","status":422}`, "", " {} ", "null"} {
			if got := JudgeBody(t.Context(), Request{Write: true}, header("Content-Type", label), []byte(body), nil); got != want {
				t.Errorf("%s %q: %s", label, body, got.Text)
			}
		}
	}
}
