package transport

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// A response may come before the event that the request was written. The verdict on a write
// waits for that event, for a second at most.
func TestResponseOvertakesTheWriteEvent(t *testing.T) {
	for name, test := range map[string]struct {
		told    bool
		err     error
		outcome fault.Outcome
		took    time.Duration
	}{
		"written":    {true, nil, fault.OutcomeAccepted, time.Millisecond},
		"broken":     {true, io.ErrClosedPipe, fault.OutcomeUnknown, time.Millisecond},
		"never told": {false, nil, fault.OutcomeUnknown, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			network := roundTripper(func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GotConn(httptrace.GotConnInfo{Conn: struct{ net.Conn }{}})
				if test.told {
					time.AfterFunc(time.Millisecond, func() { trace.WroteRequest(httptrace.WroteRequestInfo{Err: test.err}) })
				}
				return reply(201, ""), nil
			})
			began := time.Now()
			r := newClient(t, network).Do(t.Context(), write(), nil)
			if took := time.Since(began); r.Outcome != test.outcome || took != test.took {
				t.Errorf("%s: %v after %v", name, r.Outcome, took)
			}
		})
	}
}

// Bytes that did not leave are not counted. A write is retried only if no byte left.
func TestWriteOnABreakingConnection(t *testing.T) {
	for _, left := range []int{0, 1, 50} {
		dial := func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { ours.Close(); theirs.Close() })
			return &breaking{ours, left}, nil
		}
		r := clientOf(t, "http://127.0.0.1", over(dial)).Do(t.Context(), write(), nil)
		want, outcome := 4, fault.OutcomeNotSent
		if left > 0 {
			want, outcome = 1, fault.OutcomeUnknown
		}
		if check(t, r.err(), io.ErrClosedPipe); r.Attempts != want || r.Outcome != outcome || r.Evidence.BytesWritten != int64(left) {
			t.Errorf("%d bytes leave: %d attempts, %v, %+v", left, r.Attempts, r.Outcome, r.Evidence)
		}
	}
}

// breaking is a connection that breaks after some bytes.
type breaking struct {
	net.Conn
	left int
}

func (d *breaking) Write(p []byte) (int, error) {
	n := min(len(p), d.left)
	d.left -= n
	if n < len(p) {
		return n, io.ErrClosedPipe
	}
	return n, nil
}
