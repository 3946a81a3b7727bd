package hostile_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/conformance/operations"
	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// allocated returns how much f allocates, whatever becomes of it.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// kept returns how much of the heap f leaves in use.
func kept(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return max(after.HeapAlloc, before.HeapAlloc) - before.HeapAlloc
}

func TestGzipBomb(t *testing.T) {
	const limit, unfolded = 8 << 20, 32 << 20 // the default cap
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	io.WriteString(z, `{"cards":"`)
	for part := bytes.Repeat([]byte("4"), 1<<20); bomb.Len() < unfolded>>10; {
		if _, err := z.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", bomb.Len()) + bomb.String()
	server := testkit.AnswerWire(t, answer)
	lookup := operations.At(t, server.Base)[0]
	var err error
	most := uint64(6 * limit)
	if racing {
		most *= 2 // a bytes.Buffer that grows under the race detector allocates twice
	}
	if got := allocated(func() { _, err = lookup.Call(t.Context()) }); got > most {
		t.Errorf("allocated %d MiB, the cap is %d", got>>20, limit>>20)
	}
	if !errors.Is(err, bins.ErrResponseTooLarge) {
		t.Errorf("got %v, want ErrResponseTooLarge", err)
	}
	if n := len(server.Received()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	err = nil
	if got := kept(func() { _, err = lookup.Call(t.Context()) }); got > limit/8 {
		t.Errorf("the error keeps %d KiB in use", got>>10)
	}
	runtime.KeepAlive(err)
	if tooLarge, ok := errors.AsType[*bins.Error](err); !ok || len(tooLarge.Body()) > 64<<10 {
		t.Errorf("%T holds more of the body than it documents", err)
	}
}

// Refunds and downloads ask for no encoding, so that nothing unfolds.
func TestUnaskedEncoding(t *testing.T) {
	server := testkit.AnswerWire(t, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00")
	list := operations.At(t, server.Base)
	if v, err := list[1].Call(t.Context()); err != nil || !bytes.Equal(v.(*refunds.Receipt).Body, []byte("\x1f\x8b\x08\x00")) {
		t.Errorf("refund: %v, %v", v, err)
	}
	if _, err := list[2].Call(t.Context()); !errors.Is(err, bins.ErrBadResponse) {
		t.Errorf("download: %v, want ErrBadResponse", err)
	}
}

// TestEndlessHeads answers with heads that never end, or in which no response
// comes. Each is one request, and ends without an answer's body.
func TestEndlessHeads(t *testing.T) {
	endless := func(first, more string) func(net.Conn) {
		repeated := []byte(more) // once, or the test would measure its own copies
		return func(c net.Conn) {
			_, err := io.WriteString(c, first)
			for err == nil {
				_, err = c.Write(repeated)
			}
		}
	}
	for name, answer := range map[string]func(net.Conn){
		"a header without end":   endless("HTTP/1.1 200 OK\r\n", "X-Bomb: 4111111111111111\r\n"),
		"a line without end":     endless("HTTP/1.1 200 OK\r\nX-Bomb: ", "4111111111111111"),
		"a trailing bomb of 400": endless("HTTP/1.1 400 Bad Request\r\n", "X-Bomb: "+strings.Repeat("x", 1000)+"\r\n"),
		"100 without end":        endless("", "HTTP/1.1 100 Continue\r\n\r\n"),
		"103 without end":        endless("", "HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n"),
		// The connection stays open, so that reading a body would not end.
		"101": func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tls\r\n\r\n4111111111111111")
			io.Copy(io.Discard, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := testkit.ServeWire(t, answer)
			for _, e := range operations.At(t, server.Base) {
				var err error
				got := allocated(func() { _, err = e.Call(t.Context()) })
				if !errors.Is(err, bins.ErrBadResponse) || e.Name == "refund" && !errors.Is(err, refunds.ErrOutcomeUnknown) {
					t.Errorf("%s: %v, want ErrBadResponse", e.Name, err)
				}
				// What is not HTTP is asked for once more by those who only read.
				want := 2
				if e.Name == "refund" || name == "101" {
					want = 1
				}
				if n := len(server.Received()); n != want {
					t.Errorf("%s: %d requests, want %d", e.Name, n, want)
				}
				if body := bodyOf(err); len(body) > 0 {
					t.Errorf("%s: read a body of %d bytes", e.Name, len(body))
				}
				if got > 4<<20 {
					t.Errorf("%s: allocated %d KiB for 64 KiB of header", e.Name, got>>10)
				}
			}
		})
	}
}

// bodyOf is the body that any of the three packages' errors holds.
func bodyOf(err error) []byte {
	if e, ok := errors.AsType[*bins.Error](err); ok {
		return e.Body()
	}
	if e, ok := errors.AsType[*refunds.Error](err); ok {
		return e.Body()
	}
	if e, ok := errors.AsType[*updater.Error](err); ok {
		return e.Body()
	}
	return nil
}

func TestNesting(t *testing.T) {
	deep := strings.Repeat("[", 100<<10)
	answer := func(status int, body string) string {
		return fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	}
	for name, body := range map[string]string{
		"an unknown member": `{"cards":[],"x":` + deep + strings.Repeat("]", len(deep)) + `}`,
		"cards":             `{"cards":` + deep + strings.Repeat("]", len(deep)) + `}`,
		"no end":            `{"cards":` + deep,
		"objects":           strings.Repeat(`{"x":`, 20<<10),
		"an error":          `{"error":{"code":"deep","details":` + deep + strings.Repeat("]", len(deep)) + `}}`,
	} {
		for _, status := range []int{200, 400} {
			server := testkit.AnswerWire(t, answer(status, body))
			want := map[int]error{200: bins.ErrBadResponse, 400: bins.ErrBadRequest}[status]
			for _, e := range operations.At(t, server.Base, bins.WithMaxRetries(0)) {
				if status == 200 && e.Name != "lookup" {
					continue // the answers of the others are not decoded
				}
				var err error
				got := allocated(func() { _, err = e.Call(t.Context()) })
				if !errors.Is(err, want) {
					t.Errorf("%s of %s, status %d: %v, want %v", e.Name, name, status, err, want)
				}
				if got > 8<<20 {
					t.Errorf("%s of %s, status %d: allocated %d KiB for %d", e.Name, name, status, got>>10, len(body)>>10)
				}
			}
		}
	}
}
