package matrix

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
)

// bubble is a world of net/http's transport over a network in memory, so that
// the events are the true ones and time is the bubble's.
func bubble(scheme string, serve func(c net.Conn, requests *atomic.Int64), change ...func(*site)) world {
	return func(t *testing.T) site {
		var requests atomic.Int64
		transport := operations.InMemory(func(c net.Conn) { serve(c, &requests) })
		transport.TLSHandshakeTimeout = 5 * time.Second
		t.Cleanup(transport.CloseIdleConnections)
		s := site{
			base: scheme + "://127.0.0.1", http: &http.Client{Transport: transport},
			seen: func() int { return int(requests.Load()) },
		}
		for _, f := range change {
			f(&s)
		}
		return s
	}
}

// speaking reads requests and answers each one, with pauses before the parts.
func speaking(pause time.Duration, parts ...string) func(net.Conn, *atomic.Int64) {
	return func(c net.Conn, requests *atomic.Int64) {
		in := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			requests.Add(1)
			for _, part := range parts {
				time.Sleep(pause)
				io.WriteString(c, part)
			}
		}
	}
}

// trickling answers with swift at once, and then with a byte each second: no read waits long.
func trickling(swift string) func(net.Conn, *atomic.Int64) {
	return func(c net.Conn, requests *atomic.Int64) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		requests.Add(1)
		for _, err = io.WriteString(c, swift); err == nil; _, err = io.WriteString(c, " ") {
			time.Sleep(time.Second)
		}
	}
}

// silent counts a connection and never speaks.
func silent(c net.Conn, connections *atomic.Int64) {
	connections.Add(1)
	io.Copy(io.Discard, c)
}

// hanging is a world where dials never end by themselves.
func hanging(change ...func(*site)) world {
	return func(t *testing.T) site {
		s := dialing(func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})(t)
		for _, f := range change {
			f(&s)
		}
		return s
	}
}

// until ends the caller's context after d.
func until(d time.Duration) func(*site) {
	return func(s *site) {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		s.ctx = ctx
		time.AfterFunc(d+time.Second, cancel)
	}
}

func canceledAfter(d time.Duration) func(*site) {
	return func(s *site) {
		ctx, cancel := context.WithCancel(context.Background())
		s.ctx = ctx
		time.AfterFunc(d, cancel)
	}
}

const (
	fullHead = head + "Content-Length: 80\r\n\r\n"
	soon     = 3 * time.Second
)

func throttled(code int, header string) func(net.Conn, *atomic.Int64) {
	return speaking(0, "HTTP/1.1 "+strconv.Itoa(code)+" Later\r\nContent-Length: 0\r\n"+header+"\r\n\r\n")
}

// inTime are the rows of the matrix that need time. The attempts' timeouts are
// the defaults of 10, 35 and 30 seconds.
var inTime = []matrixRow{
	{"dial that hangs", hanging(), fail(3, bins.ErrTimeout), notSent(3, bins.ErrTimeout), fail(3, bins.ErrTimeout)},
	{"TLS handshake that hangs", bubble("https", silent), fail(4, errNoAnswer), notSent(3, errNoAnswer), fail(4, errNoAnswer)},
	{"answer that never comes", bubble("http", speaking(0)), fail(3, bins.ErrTimeout), unknown(1, bins.ErrTimeout), fail(3, bins.ErrTimeout)},
	{"body that stalls", bubble("http", speaking(0, fullHead+"{")),
		fail(3, bins.ErrTimeout), accepted(1, errBadResponse, bins.ErrTimeout), fail(1, bins.ErrTimeout)},
	{"body of a byte a second", bubble("http", trickling(head+"Content-Length: 5000\r\n\r\n")),
		fail(3, bins.ErrTimeout), accepted(1, errBadResponse, bins.ErrTimeout), fail(1, context.DeadlineExceeded)},
	{"header of a byte a second", bubble("http", trickling("HTTP/1.1 200 OK\r\nX:")), fail(3, bins.ErrTimeout), unknown(1, bins.ErrTimeout), fail(3, bins.ErrTimeout)},
	{"error of a byte a second", bubble("http", trickling("HTTP/1.1 400 Bad Request\r\nContent-Length: 5000\r\n\r\n"), until(soon+soon)),
		fail(1, bins.ErrBadRequest), rejected(1, bins.ErrBadRequest), fail(1, bins.ErrBadRequest)},
	{"deadline while dialing", hanging(until(soon)), fail(1, context.DeadlineExceeded), notSent(1, context.DeadlineExceeded), fail(1, context.DeadlineExceeded)},
	{"canceled while dialing", hanging(canceledAfter(soon)), fail(1, errCanceled), notSent(1, errCanceled), fail(1, errCanceled)},
	{"deadline on the wire", bubble("http", speaking(0), until(soon)), fail(1, context.DeadlineExceeded), unknown(1, context.DeadlineExceeded), fail(1, context.DeadlineExceeded)},
	{"canceled on the wire", bubble("http", speaking(0), canceledAfter(soon)), fail(1, errCanceled), unknown(1, errCanceled), fail(1, errCanceled)},
	{"canceled within the body", bubble("http", speaking(0, fullHead+"{"), canceledAfter(soon)),
		fail(1, errCanceled), accepted(1, errBadResponse), fail(1, errCanceled)},
	{"canceled in a back-off", bubble("http", throttled(429, "Retry-After: 10"), canceledAfter(soon)),
		fail(1, errCanceled, bins.ErrRateLimited), rejected(1, errCanceled, bins.ErrRateLimited), fail(1, errCanceled, bins.ErrRateLimited)},

	{"429 with a wait", bubble("http", throttled(429, "Retry-After: 2")), fail(4, bins.ErrRateLimited), rejected(3, bins.ErrRateLimited), fail(4, bins.ErrRateLimited)},
	{"503 with a wait", bubble("http", throttled(503, "Retry-After: 2")), fail(4, bins.ErrServer), unknown(1, bins.ErrServer), fail(4, bins.ErrServer)},
	{"429 with a wait beyond the deadline", bubble("http", throttled(429, "Retry-After: 5"), until(soon)),
		fail(1, bins.ErrRateLimited), rejected(1, bins.ErrRateLimited), fail(1, bins.ErrRateLimited)},
	{"limiter refuses a repetition", bubble("http", throttled(429, signature), until(soon), oneAnHour),
		fail(1, bins.ErrLocalLimit, context.DeadlineExceeded, bins.ErrRateLimited),
		rejected(1, bins.ErrLocalLimit, context.DeadlineExceeded, bins.ErrRateLimited),
		fail(1, bins.ErrLocalLimit, context.DeadlineExceeded, bins.ErrRateLimited)},
}

func oneAnHour(s *site) { with(options.WithRateLimit(1.0/3600, 1))(s) }

// TestMatrixInTime is the part of the retry matrix that needs time.
func TestMatrixInTime(t *testing.T) { runMatrix(t, inTime, true) }
