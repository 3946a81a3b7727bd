package hostile_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// A hostile response is of a size that no service has reason to send.
type hostile struct {
	name string
	say  func(io.Writer)
	ends [3]error // of a lookup, a refund and a download; nil is a success
}

const responseCap = 8 << 20 // of lookups, by default

var (
	bad      = [3]error{bins.ErrBadResponse, refunds.ErrBadResponse, updater.ErrBadResponse}
	refused  = [3]error{bins.ErrBadRequest, refunds.ErrBadRequest, updater.ErrBadRequest}
	accepted = [3]error{}
)

// ofLookup is a response that only a lookup fails with: it alone reads all of it.
func ofLookup(err error) [3]error { return [3]error{err, nil, nil} }

var hostiles = []hostile{
	{"a bomb of gzip, 1000:1", inChunks("200 OK\r\nContent-Encoding: gzip", func(w io.Writer) {
		z := gzip.NewWriter(w)
		repeated(`{"cards":"`, 100<<20, "4", `"}`)(z)
		z.Close()
	}), [3]error{bins.ErrBadResponse, nil, updater.ErrBadResponse}},
	{"100 MB of objects", inChunks("200 OK", repeated(`{"cards":[`, 33<<20, "{},", "{}]}")), ofLookup(bins.ErrBadResponse)},
	{"an array of 100 MB", inChunks("200 OK", repeated("[", 33<<20, "{},", "{}]")), ofLookup(bins.ErrBadResponse)},
	{"objects up to the cap", inChunks("200 OK", repeated(`{"cards":[`, responseCap/3-100, "{},", "{}]}")), ofLookup(bins.ErrBadResponse)},
	{"10,000 items", inChunks("200 OK", repeated(`{"cards":[`, 9_900, "{},", "{}]}")), accepted},
	{"10,000 brands", inChunks("200 OK", repeated(`{"cards":[{"data":{"card":{"additional_card_brands":[`, 9_900, "{},", "{}]}}}]}")), accepted},
	{"3,000 full items", inChunks("200 OK", repeated(`{"cards":[`, 3_000, `{"data":{"card":{}}},`, "{}]}")), accepted},
	{"20,000 items that are null", inChunks("200 OK", repeated(`{"cards":[`, 19_900, "null,", "null]}")), accepted},
	{"a million members", inChunks("200 OK", repeated(`{"cards":[{"data":{"card":{`, 1e6, `"a":1,`, `"b":1}}}]}`)), accepted},
	{"strings of 1 MB", inChunks("200 OK", repeated(`{"cards":[{"bin":"411111"`, 7, `,"error":"`+strings.Repeat("x", 1<<20)+`"`, "}]}")), [3]error{nil, refunds.ErrBadResponse, nil}},

	{"nested lists", inChunks("200 OK", repeated(`{"cards":`, 100_000, "[", strings.Repeat("]", 100_000)+"}")), ofLookup(bins.ErrBadResponse)},
	{"nested lists in an unknown member", inChunks("200 OK", repeated(`{"cards":[],"x":`, 100_000, "[", strings.Repeat("]", 100_000)+"}")), ofLookup(bins.ErrBadResponse)},
	{"nested objects without an end", inChunks("200 OK", repeated("", 20_000, `{"x":`, "")), ofLookup(bins.ErrBadResponse)},
	{"nested details of an error", inChunks("200 OK", repeated(`{"error":{"code":"deep","details":`, 100_000, "[", strings.Repeat("]", 100_000)+"}}")), [3]error{bins.ErrBadResponse, refunds.ErrBadResponse, updater.ErrBadResponse}},
	{"nested details of a 400", inChunks("400 Bad Request", repeated(`{"error":{"code":"deep","details":`, 100_000, "[", strings.Repeat("]", 100_000)+"}}")), refused},
	{"an error of 100 MB", inChunks("400 Bad Request", repeated("", 100<<20, " ", "")), refused},

	{"a header without end", endless("HTTP/1.1 200 OK\r\n", "X-Bomb: 4111111111111111\r\n"), bad},
	{"a line without end", endless("HTTP/1.1 200 OK\r\nX-Bomb: ", "4111111111111111"), bad},
	{"a header without end of a 400", endless("HTTP/1.1 400 Bad Request\r\n", "X-Bomb: "+strings.Repeat("x", 1000)+"\r\n"), bad},
	{"100 without end", endless("", "HTTP/1.1 100 Continue\r\n\r\n"), bad},
	{"103 without end", endless("", "HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n"), bad},
	{"101, and bytes without end", endless("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tls\r\n\r\n", "4111111111111111"), bad},
}

func repeated(before string, n int, part, after string) func(io.Writer) {
	return func(w io.Writer) {
		io.WriteString(w, before)
		piece := bytes.Repeat([]byte(part), 1+(64<<10)/len(part))
		for left := n * len(part); left > 0; {
			m, err := w.Write(piece[:min(left, len(piece))])
			if left -= m; err != nil {
				return
			}
		}
		io.WriteString(w, after)
	}
}

func endless(first, more string) func(io.Writer) {
	return func(w io.Writer) {
		_, err := io.WriteString(w, first)
		for err == nil {
			_, err = io.WriteString(w, more)
		}
	}
}

func inChunks(head string, body func(io.Writer)) func(io.Writer) {
	return func(w io.Writer) {
		fmt.Fprintf(w, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", head)
		body(chunks{w})
		io.WriteString(w, "0\r\n\r\n")
	}
}

type chunks struct{ io.Writer }

func (c chunks) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	_, err := fmt.Fprintf(c.Writer, "%x\r\n%s\r\n", len(p), p)
	return len(p), err
}

// TestHostile makes each call in a process of its own, compares what becomes of it, and
// compares the most memory that the process ever took with what it took before.
func TestHostile(t *testing.T) {
	if name, ok := os.LookupEnv("HOSTILE_NAME"); ok {
		meet(t, name, os.Getenv("HOSTILE_BASE"))
		return
	}
	if testing.Short() {
		t.Skip("hundreds of megabytes take their time under the race detector: run without -short")
	}
	for _, h := range hostiles {
		t.Run(h.name, func(t *testing.T) {
			server := testkit.ServeWire(t, func(c net.Conn) { h.say(c) })
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHostile$", "-test.timeout=1m", "-test.v")
			child.Env = append(os.Environ(), "HOSTILE_NAME="+h.name, "HOSTILE_BASE="+server.Base, "GOMEMLIMIT=32MiB")
			out, err := child.CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte("--- PASS: TestHostile")) {
				t.Fatalf("%v: %s", err, out)
			}
			_, grown, _ := bytes.Cut(out, []byte("grown by "))
			t.Logf("%.7s", grown)
		})
	}
}

// meet makes the three calls and keeps their errors.
func meet(t *testing.T, name, base string) {
	for _, h := range hostiles {
		if h.name != name {
			continue
		}
		before, inUse := testkit.PeakMemory(), heap()
		var errs []error
		for i, e := range operations.At(t, base, options.WithMaxRetries(0)) {
			_, err := e.Call(t.Context())
			if want := h.ends[i]; !errors.Is(err, want) || (want == nil) != (err == nil) {
				t.Errorf("%s: %v, want %v", e.Name, err, want)
			}
			if held := bodyOf(err); len(held) > 64<<10 {
				t.Errorf("%s: the error holds %d bytes", e.Name, len(held))
			}
			errs = append(errs, err)
		}
		grown, kept := testkit.PeakMemory()-before, heap()-inUse
		for range 1000 { // net/http's goroutines may be about to end
			if kept > responseCap/8 {
				time.Sleep(time.Millisecond)
				kept = heap() - inUse
			}
		}
		runtime.KeepAlive(errs)
		t.Logf("grown by %d MiB", grown>>20)
		// The body, what is decoded from it, and as much again: the collector may come late.
		if !testkit.Racing && (grown > 6*responseCap || kept > responseCap/8) {
			t.Errorf("took %d MiB and keeps %d KiB, the cap is %d MiB", grown>>20, kept>>10, responseCap>>20)
		}
		return
	}
	t.Errorf("no response %q", name)
}

// bodyOf is the body that any of the three packages' errors holds.
func bodyOf(err error) []byte {
	if e, ok := errors.AsType[interface {
		error
		Body() []byte
	}](err); ok {
		return e.Body()
	}
	return nil
}

func heap() int {
	var now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&now)
	return int(now.HeapAlloc)
}
