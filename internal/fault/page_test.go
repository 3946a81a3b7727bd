package fault

import (
	"bufio"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// labelled is the header of a response under a label; "": under none.
func labelled(label string) http.Header {
	if label == "" {
		return header()
	}
	return header("Content-Type", label)
}

// TestPages: a page is what begins like one, under any label. Other markup is data, such as XML, but
// under the label of a page it is one. Everything else is none under any label.
func TestPages(t *testing.T) {
	const signIn = "<html><body>Sign in</body></html>"
	labels := []string{"", "application/json", "text/plain; charset=utf-8", "text/html; charset=utf-8", "TEXT/HTML", "application/xhtml+xml", "text/csv"}
	check := func(isPage func(label string) bool, bodies ...string) {
		for _, body := range bodies {
			for _, label := range labels {
				want := Success
				if isPage(label) {
					want = HTMLResponse
				}
				write := JudgeBody(t.Context(), Request{Write: true}, labelled(label), []byte(body), nil)
				read := JudgeBody(t.Context(), Request{}, labelled(label), []byte(body), nil)
				download := JudgeContent(labelled(label), bufio.NewReader(iotest.HalfReader(strings.NewReader(body))))
				if write != want || read != want || download != want {
					t.Errorf("%.40q under %q: write %q, read %q, download %q; want %q", body, label, write.Text, read.Text, download.Text, want.Text)
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

// TestLabelOfWhatIsNotSeen: where the body does not show what it is, its label is all there is.
func TestLabelOfWhatIsNotSeen(t *testing.T) {
	cut := errors.New("reset")
	for _, test := range []struct {
		name, body string
		err        error
		header     http.Header
		want       Outcome
	}{
		{"nothing arrived of a page", "", cut, labelled("text/html"), OutcomeUnknown},
		{"nothing arrived of JSON", "", cut, labelled("application/json"), OutcomeAccepted},
		{"a text that broke off", "O", cut, labelled("text/html"), OutcomeAccepted},
		{"a page that broke off", "<html>", cut, labelled("application/json"), OutcomeUnknown},
		{"encoded as a page", "\x1b\x00\xf8", nil, header("Content-Type", "text/html", "Content-Encoding", "br"), OutcomeUnknown},
		{"encoded as JSON", "\x1b\x00\xf8", nil, header("Content-Type", "application/json", "Content-Encoding", "br"), OutcomeAccepted},
		{"an encoding of nothing", "", nil, header("Content-Type", "text/html", "Content-Encoding", "br"), OutcomeAccepted},
	} {
		if got := JudgeBody(t.Context(), Request{Write: true}, test.header, []byte(test.body), test.err); got.Outcome != test.want {
			t.Errorf("%s: %s, %q", test.name, got.Outcome, got.Text)
		}
	}
}
