package hostile_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/conformance/operations"
	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// A hostile answer is of a size that no service has reason to send.
type hostile struct {
	name    string
	head    string
	body    func(w io.Writer)
	lookup  error // what a lookup fails with; nil: it succeeds
	refund  error
	content error // of a download
}

const responseCap = 8 << 20 // of lookups, by default

func times(w io.Writer, n int, part string) {
	piece := bytes.Repeat([]byte(part), 1+(64<<10)/len(part))
	for left := n * len(part); left > 0; {
		m, err := w.Write(piece[:min(left, len(piece))])
		if left -= m; err != nil {
			return
		}
	}
}

func hostiles() []hostile {
	ok := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	text := func(before string, n int, part, after string) func(io.Writer) {
		return func(w io.Writer) {
			io.WriteString(w, before)
			times(w, n, part)
			io.WriteString(w, after)
		}
	}
	return []hostile{
		{"a bomb of gzip, 1000:1", ok + "Content-Encoding: gzip\r\n", func(w io.Writer) {
			z := gzip.NewWriter(w)
			text(`{"cards":"`, 100<<20, "4", `"}`)(z)
			z.Close()
		}, bins.ErrResponseTooLarge, nil, bins.ErrBadResponse},
		{"100 MB of objects", ok, text(`{"cards":[`, 33<<20, "{},", "{}]}"), bins.ErrResponseTooLarge, nil, nil},
		{"an array of 100 MB", ok, text("[", 33<<20, "{},", "{}]"), bins.ErrResponseTooLarge, nil, nil},
		{"objects up to the cap", ok, text(`{"cards":[`, responseCap/3-100, "{},", "{}]}"), bins.ErrBadResponse, nil, nil},
		{"10,000 items", ok, text(`{"cards":[`, 9_900, "{},", "{}]}"), nil, nil, nil},
		{"10,000 brands", ok, text(`{"cards":[{"data":{"card":{"additional_card_brands":[`, 9_900, "{},", "{}]}}}]}"), nil, nil, nil},
		{"3,000 full items", ok, text(`{"cards":[`, 3_000, `{"data":{"card":{}}},`, "{}]}"), nil, nil, nil},
		{"100,000 items that are null", ok, text(`{"cards":[`, 99_000, "null,", "null]}"), nil, nil, nil},
		{"a million members", ok, text(`{"cards":[{"data":{"card":{`, 1e6, `"a":1,`, `"b":1}}}]}`), nil, nil, nil},
		{"nesting of 10,000", ok, text(`{"cards":`, 20_000, "[", strings.Repeat("]", 20_000)+"}"), bins.ErrBadResponse, nil, nil},
		{"strings of 1 MB", ok, text(`{"cards":[{"bin":"411111"`, 7, `,"error":"`+strings.Repeat("x", 1<<20)+`"`, "}]}"), nil, nil, nil},
		{"an error of 100 MB", "HTTP/1.1 400 Bad Request\r\n", text("", 100<<20, " ", ""), bins.ErrBadRequest, refunds.ErrBadRequest, updater.ErrBadRequest},
	}
}

// hostileServer answers each connection with an answer whose end is the
// connection's.
func hostileServer(t *testing.T, h hostile) *testkit.WireServer {
	return testkit.ServeWire(t, func(c net.Conn) {
		fmt.Fprintf(c, "%sTransfer-Encoding: chunked\r\n\r\n", h.head)
		w := &chunks{w: c}
		h.body(w)
		if w.err == nil {
			io.WriteString(c, "0\r\n\r\n")
		}
	})
}

type chunks struct {
	w   io.Writer
	err error
}

func (c *chunks) Write(p []byte) (int, error) {
	if c.err != nil || len(p) == 0 {
		return 0, c.err
	}
	_, c.err = fmt.Fprintf(c.w, "%x\r\n%s\r\n", len(p), p)
	return len(p), c.err
}

// TestHostileAnswers makes each call once, and compares what becomes of it.
func TestHostileAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of megabytes take their time under the race detector: run without -short")
	}
	for _, h := range hostiles() {
		t.Run(h.name, func(t *testing.T) {
			server := hostileServer(t, h)
			for i, e := range operations.At(t, server.Base, bins.WithMaxRetries(0)) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				_, err := e.Call(ctx)
				cancel()
				if want := []error{h.lookup, h.refund, h.content}[i]; !errors.Is(err, want) || (want == nil) != (err == nil) {
					t.Errorf("%s: %v, want %v", e.Name, err, want)
				}
			}
		})
	}
}

// TestHostileMemory makes each lookup in a process of its own, and compares the
// most memory that the process ever took with what it took before.
func TestHostileMemory(t *testing.T) {
	if os.Getenv("HOSTILE_BASE") != "" {
		hostileChild(t)
		return
	}
	if _, err := peakMemory(); err != nil {
		t.Skip("this system does not tell the most memory that a process took")
	}
	if racing {
		t.Skip("the race detector takes memory of its own")
	}
	for _, h := range hostiles() {
		t.Run(h.name, func(t *testing.T) {
			server := hostileServer(t, h)
			child := exec.Command(os.Args[0], "-test.run=^TestHostileMemory$", "-test.v")
			child.Env = append(os.Environ(), "HOSTILE_BASE="+server.Base)
			out, err := child.CombinedOutput()
			_, after, found := strings.Cut(string(out), "grown by ")
			if err != nil || !found {
				t.Fatalf("%v: %s", err, out)
			}
			digits, _, _ := strings.Cut(after, " ")
			grown, err := strconv.Atoi(digits)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%5.1f MiB", float64(grown)/(1<<20))
			// The body, what is decoded from it, and as much again, because
			// the collector lets the heap double before it runs.
			if grown > 6*responseCap {
				t.Errorf("took %d MiB, 6 times the cap are %d", grown>>20, 6*responseCap>>20)
			}
		})
	}
}

func hostileChild(t *testing.T) {
	lookup := operations.At(t, os.Getenv("HOSTILE_BASE"), bins.WithMaxRetries(0))[0]
	before, err := peakMemory()
	if err != nil {
		t.Fatal(err)
	}
	v, failed := lookup.Call(t.Context())
	after, err := peakMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("grown by %d : %T, %v", after-before, v, failed)
}

// peakMemory is the most memory that this process ever took.
func peakMemory() (int, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int
	if _, err := fmt.Sscanf(line, "%d kB", &kilobytes); err != nil {
		return 0, err
	}
	return kilobytes << 10, nil
}
