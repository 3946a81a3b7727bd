package secrets_test

import (
	"bytes"
	"log"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// standardLog captures the standard log until the test's end.
func standardLog(t *testing.T) *bytes.Buffer {
	var text bytes.Buffer
	before := log.Writer()
	log.SetOutput(&text)
	t.Cleanup(func() { log.SetOutput(before) })
	return &text
}

// TestBrokenHTTP answers with what is not quite HTTP, which net/http quotes in
// its errors and could write to the standard log. That log would also get what a
// service sends beyond the end of an answer, while the connection is kept for
// the next request: net/http offers no way to keep it silent.
func TestBrokenHTTP(t *testing.T) {
	standard := standardLog(t)
	const ok = "HTTP/1.1 200 OK\r\n"
	body := planted("an answer's body")
	for name, answer := range map[string]string{
		"nothing":             "",
		"no HTTP":             "4111111111111111 " + body + "\r\n\r\n",
		"a status":            "HTTP/1.1 4111111111111111 OK\r\n\r\n",
		"a status text":       "HTTP/1.1 500 4111111111111111 " + body + "\r\nContent-Length: 0\r\n\r\n",
		"a version":           "HTTP/4111111111111111 200 OK\r\n\r\n",
		"a header":            ok + "4111111111111111 " + body + "\r\n\r\n",
		"a length":            ok + "Content-Length: 4111111111111111x\r\n\r\n" + body,
		"two lengths":         ok + "Content-Length: 378282246310005\r\nContent-Length: 4111111111111111\r\n\r\n" + body,
		"a transfer encoding": ok + "Transfer-Encoding: 4111111111111111\r\n\r\n" + body,
		"a chunk":             ok + "Transfer-Encoding: chunked\r\n\r\n4111111111111111zz\r\n" + body,
		"a chunk's end":       ok + "Transfer-Encoding: chunked\r\n\r\n4\r\n4111111111111111\r\n0\r\n\r\n",
		"a body cut off":      ok + "Content-Length: 400\r\n\r\n{\"cards\":[\"4111111111111111\"," + body,
		"a gzip":              ok + "Content-Encoding: gzip\r\nContent-Length: 16\r\n\r\n4111111111111111",
		"an encoding":         ok + "Content-Encoding: 4111111111111111\r\nContent-Length: 16\r\n\r\n4111111111111111",
		"a location":          "HTTP/1.1 302 Found\r\nLocation: http://[" + planted("Location") + "\r\nContent-Length: 0\r\n\r\n",
	} {
		server := testkit.AnswerWire(t, answer)
		list, err := operations.New(server.Base, plantedIDs(), bins.WithRetryWait(0, 0), bins.WithMaxRetries(1))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			v, err := e.Call(t.Context())
			if receipt, accepted := v.(*refunds.Receipt); err == nil && !(accepted && receipt != nil) {
				t.Errorf("%s of %s: no error", e.Name, name)
			}
			checkAnswer(t, e.Name+" of "+name, v, err)
		}
	}
	if standard.Len() > 0 {
		t.Errorf("the standard log says %.300s", standard)
	}
}
