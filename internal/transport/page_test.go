package transport

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carddata/carddata-go/internal/fault"
)

var labels = []string{"", "application/json", "text/plain; charset=utf-8", "text/html; charset=utf-8", "TEXT/HTML", "application/xhtml+xml", "text/csv"}

// pageOrNot makes the three kinds of call, and tells which of them met a page.
func pageOrNot(t *testing.T, label, body string) (written, looked, downloaded bool) {
	t.Helper()
	met := func(call *Call) bool {
		var header []string
		if label != "" {
			header = []string{"Content-Type", label}
		}
		network := serve(func(*http.Request) (*http.Response, error) {
			resp := reply(200, "", header...)
			resp.Body = io.NopCloser(iotest.HalfReader(strings.NewReader(body)))
			return resp, nil
		})
		r := newClient(t, network, WithMaxRetries(0)).Do(t.Context(), call, nil)
		if r.Stream != nil {
			content, err := io.ReadAll(r.Stream)
			r.Stream.Close()
			if err != nil || string(content) != body {
				t.Errorf("%q under %q: streamed %q, %v", body, label, content, err)
			}
		}
		if page := r.Failure != nil && r.Failure.Err.Error() == fault.HTMLResponse.Text; page {
			if call.Write && r.Outcome != fault.OutcomeUnknown {
				t.Errorf("%q under %q: %v", body, label, r.Outcome)
			}
			return true
		}
		if r.Failure != nil {
			t.Errorf("%q under %q: %v", body, label, r.err())
		}
		return false
	}
	stream := read()
	stream.Stream = true
	return met(write()), met(read()), met(stream)
}

// A page is what begins like one, under any label. Other markup is data, such as XML, but under the
// label of a page it is one. Everything else is none under any label.
func TestPages(t *testing.T) {
	const signIn = "<html><body>Sign in</body></html>"
	check := func(want func(label string) bool, bodies ...string) {
		for _, body := range bodies {
			for _, label := range labels {
				page := want(label)
				if write, read, download := pageOrNot(t, label, body); write != page || read != page || download != page {
					t.Errorf("%.40q under %q: write %t, read %t, download %t; want %t", body, label, write, read, download, page)
				}
			}
		}
	}
	check(func(string) bool { return true },
		signIn, "<!DOCTYPE html>"+signIn, "<!doctype HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \"x\">Sign in", "<HTML lang=en>", "<head><title>", "<body/>",
		" \r\n\t"+signIn, "\v\u00a0"+signIn, "\ufeff"+signIn, "\n\ufeff\n"+signIn, strings.Repeat(" ", 5000)+signIn,
		"<!-- 403 -->"+signIn, "<!-- a --><!-- > -->\n<!DOCTYPE html>", strings.Repeat("<!-- long -->", 200)+signIn)
	check(func(label string) bool { return strings.Contains(strings.ToLower(label), "html") },
		"<h1>Forbidden</h1>", "<center>Blocked", "<meta http-equiv=refresh content=0>", "<script>location='/login'</script>", "<form action=/login>", "<p",
		"<?xml version=\"1.0\"?><!DOCTYPE html PUBLIC \"x\" \"y\"><html xmlns=\"z\">", "<!-- blocked -->Access denied", "<!-- never ends", "<!DOCTY", "<ht",
		"<ok/>", "<ok></ok>\r\n", "<?xml version=\"1.0\"?><response>", "<!-- made today --><response id=\"1\">", "<!DOCTYPE response SYSTEM \"x\"><response>",
		"<soap:Body>", "<title-list>", "<head-count>", "<htmlx>")
	check(func(string) bool { return false },
		"", " \r\n", "\ufeff", "OK", "ok <b>done</b>", "201", "null", `"created"`, `{"status":"ok"}`, " {}", `{"html":"<html>"}`, "[]", "card,token\n1,<html>\n",
		"<", "<3,1\n", "<<a>>", "<=5", "<k\x9f\x01\xfe", "\xff\xfe<html>", "\x1f\x8b<html>")
}

// Where the body does not show what it is, its label is all there is.
func TestLabelOfWhatIsNotSeen(t *testing.T) {
	cut := errors.New("reset")
	for _, test := range []struct {
		name   string
		body   io.Reader
		header []string
		want   fault.Outcome
	}{
		{"nothing arrived of a page", iotest.ErrReader(cut), []string{"Content-Type", "text/html"}, fault.OutcomeUnknown},
		{"nothing arrived of JSON", iotest.ErrReader(cut), []string{"Content-Type", "application/json"}, fault.OutcomeAccepted},
		{"a text that broke off", io.MultiReader(strings.NewReader("O"), iotest.ErrReader(cut)), []string{"Content-Type", "text/html"}, fault.OutcomeAccepted},
		{"a page that broke off", io.MultiReader(strings.NewReader("<html>"), iotest.ErrReader(cut)), []string{"Content-Type", "application/json"}, fault.OutcomeUnknown},
		{"encoded as a page", strings.NewReader("\x1b\x00\xf8"), []string{"Content-Type", "text/html", "Content-Encoding", "br"}, fault.OutcomeUnknown},
		{"encoded as JSON", strings.NewReader("\x1b\x00\xf8"), []string{"Content-Type", "application/json", "Content-Encoding", "br"}, fault.OutcomeAccepted},
		{"an encoding of nothing", strings.NewReader(""), []string{"Content-Type", "text/html", "Content-Encoding", "br"}, fault.OutcomeAccepted},
	} {
		network := serve(func(*http.Request) (*http.Response, error) {
			resp := reply(200, "", test.header...)
			resp.Body = io.NopCloser(test.body)
			return resp, nil
		})
		if r := newClient(t, network).Do(t.Context(), write(), nil); r.Outcome != test.want {
			t.Errorf("%s: %v, %v", test.name, r.Outcome, r.err())
		}
	}
}

// A download that breaks off within its first bytes is a page only if an element of one arrived.
func TestBrokenBeginOfDownload(t *testing.T) {
	cut := errors.New("reset")
	for begin, page := range map[string]bool{
		"<html>": true, "<!DOCTYPE html>": true, "<!-- a --><head>": true, "<ht": false, "<": false, "<!-- of": false, "<!DOCTYPE h": false, "<ok/>": false, "": false, "a,b": false,
	} {
		network := serve(func(*http.Request) (*http.Response, error) {
			resp := reply(200, "", "Content-Type", "text/csv")
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(begin), iotest.ErrReader(cut)))
			return resp, nil
		})
		call := read()
		call.Stream = true
		r := newClient(t, network).Do(t.Context(), call, nil)
		if page != (r.Failure != nil) {
			t.Errorf("%q: %v", begin, r.err())
		}
		if r.Failure != nil {
			continue
		}
		got, err := io.ReadAll(r.Stream)
		if r.Stream.Close(); string(got) != begin || !errors.Is(err, fault.ErrBadResponse) || !errors.Is(err, cut) {
			t.Errorf("%q: read %q, %v", begin, got, err)
		}
	}
}
