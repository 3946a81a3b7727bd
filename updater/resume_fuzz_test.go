package updater_test

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/updater"

	"github.com/jarcoal/httpmock"
)

var theRest = regexp.MustCompile(`^(?i:bytes) 0*5-0*9/(0*10|\*)$`)

// FuzzResume: with any response to the request for the rest of ten bytes, the download has
// the ten bytes or fails.
func FuzzResume(f *testing.F) {
	for _, seed := range []string{
		"bytes 5-9/10", "bytes 5-9/*", "bytes 4-9/10", "bytes 5-6/10", "bytes 5-9/11", "bytes */10", "bytes 9-5/10", "bytes 5-9", "items 5-9/10",
		"bytes 5-18446744073709551625/10", "bytes -5-9/10", "bytes +5-9/10", "BYTES 05-9/10", "",
	} {
		f.Add(206, seed, `"v1"`, "", "56789")
	}
	f.Add(200, "bytes 5-9/10", `"v1"`, "", "0123456789")
	f.Add(206, "bytes 5-9/10", `"v2"`, "", "56789")
	f.Add(206, "bytes 5-9/10", `"v1"`, "Sat, 01 Jan 2000 00:00:00 GMT", "5678")
	f.Add(206, "bytes 5-9/10", ``, "multipart/byteranges; boundary=x", "56789and more")
	f.Add(206, "bytes 5-9/10", `"v1"`, "", "")
	f.Add(416, "bytes */5", `"v1"`, "", "")
	f.Fuzz(func(t *testing.T, status int, contentRange, etag, other, body string) {
		if status < 200 || status > 599 {
			t.Skip("not a response")
		}
		// A rest that never comes is requested for five minutes.
		synctest.Test(t, func(t *testing.T) {
			first := func(r *http.Request) (*http.Response, error) {
				resp, err := testkit.Broken(200, "01234", io.ErrUnexpectedEOF)(r)
				resp.ContentLength = 10
				resp.Header.Set("ETag", `"v1"`)
				return resp, err
			}
			rest := testkit.Answer(status, body, "Content-Range", contentRange, "ETag", etag, "Content-Type", other, "Last-Modified", other)
			_, d, err := download(t, httpmock.Responder(first), rest)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			content, err := io.ReadAll(d)
			if _, ok := errors.AsType[*updater.Error](err); err != nil && !ok {
				t.Errorf("%T: %v", err, err)
			}
			if !strings.HasPrefix(string(content), "01234") || len(content) > 10 {
				t.Errorf("%q", content)
			}
			if err == nil && (status != 206 || !theRest.MatchString(contentRange) || string(content[5:]) != body[:5] || etag != "" && etag != `"v1"`) {
				t.Errorf("%q is taken as whole", content)
			}
		})
	})
}
