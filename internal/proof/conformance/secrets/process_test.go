package secrets_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
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

// TestPanicText panics with the library's values in a process of its own, as the
// runtime prints them without fmt.
func TestPanicText(t *testing.T) {
	if os.Getenv("CANARY_PANIC") != "" {
		go panicWith(valuesToPanicWith())
		select {}
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPanicText$")
	command.Env = append(os.Environ(), "CANARY_PANIC=1")
	out, err := command.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); !failed {
		t.Fatalf("the process ended with %v", err)
	}
	text := string(out)
	if got, want := strings.Count(text, "panic: "), len(valuesToPanicWith()); got < want {
		t.Fatalf("%d panics, want %d: %.2000s", got, want, text)
	}
	for place, form := range secrets.in(text) {
		t.Errorf("a panic shows the canary of %s as %q in\n%.3000s", place, form, text)
	}
}

// panicWith panics with each value on top of the one before, and the runtime
// prints them all.
func panicWith(values []any) {
	if len(values) > 1 {
		defer panicWith(values[1:])
	}
	panic(values[0])
}

func valuesToPanicWith() []any {
	ids := plantedIDs()
	request := bins.LookupRequest{Cards: bins.Cards(ids.Cards...)}
	values := []any{request, &request, request.Cards[0].Card, *ids.Refund, ids.Refund, ids.Key}
	for _, over := range []string{"items", "400", "not JSON"} {
		list, err := operations.New("https://service.test", ids, bins.WithHTTPClient(&http.Client{Transport: plantedAnswers()[over]}))
		if err != nil {
			return nil
		}
		for _, e := range list {
			v, err := e.Call(context.Background())
			values = append(values, e.Client, v)
			if err != nil {
				values = append(values, err)
				values = append(values, dereferenced(err)...)
			}
		}
	}
	return values
}

// dereferenced are the errors behind err, by value.
func dereferenced(err error) (values []any) {
	if e, ok := errors.AsType[*bins.Error](err); ok {
		values = append(values, *e)
	}
	if e, ok := errors.AsType[*refunds.OutcomeError](err); ok {
		values = append(values, *e)
	}
	if e, ok := errors.AsType[*refunds.Error](err); ok {
		values = append(values, *e)
	}
	if e, ok := errors.AsType[*updater.Error](err); ok {
		values = append(values, *e)
	}
	return values
}
