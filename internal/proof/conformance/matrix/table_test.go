package matrix

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/fault"
)

var (
	errNoAnswer    = bins.ErrNoResponse
	errBadResponse = bins.ErrBadResponse
	errCanceled    = context.Canceled
)

// beforeAnswer are the rows that end without an answer. A refund is repeated
// only where nothing of it can have left.
var beforeAnswer = []matrixRow{
	{"unusable argument", local(unusable), fail(0, bins.ErrInvalidArgument), notSent(0, bins.ErrInvalidArgument), fail(0, bins.ErrInvalidArgument)},
	{"limiter beyond the deadline", local(spent),
		fail(0, bins.ErrLocalLimit, context.DeadlineExceeded), notSent(0, bins.ErrLocalLimit, context.DeadlineExceeded), fail(0, bins.ErrLocalLimit, context.DeadlineExceeded)},
	{"no credential", local(source(noToken)), fail(0, bins.ErrCredential, io.EOF), notSent(0, bins.ErrCredential, io.EOF), fail(0, bins.ErrCredential, io.EOF)},
	{"context that has ended", local(ended), fail(0, errCanceled), notSent(0, errCanceled), fail(0, errCanceled)},

	{"unknown host name", dialError(&net.DNSError{IsNotFound: true}), fail(1, errNoAnswer), notSent(1, errNoAnswer), fail(1, errNoAnswer)},
	{"host name lookup failed", dialError(&net.DNSError{IsTemporary: true}), fail(4, errNoAnswer), notSent(3, errNoAnswer), fail(4, errNoAnswer)},
	{"host name lookup timed out", dialError(&net.DNSError{IsTimeout: true}), fail(4, errNoAnswer), notSent(3, errNoAnswer), fail(4, errNoAnswer)},
	{"dial refused", dialError(syscall.ECONNREFUSED), fail(4, errNoAnswer, syscall.ECONNREFUSED), notSent(3, errNoAnswer, syscall.ECONNREFUSED), fail(4, errNoAnswer, syscall.ECONNREFUSED)},
	{"dial refused, library's transport", refusedPort, fail(4, errNoAnswer, syscall.ECONNREFUSED), notSent(3, errNoAnswer, syscall.ECONNREFUSED), fail(4, errNoAnswer, syscall.ECONNREFUSED)},
	{"host unreachable", dialError(syscall.EHOSTUNREACH), fail(4, errNoAnswer), notSent(3, errNoAnswer), fail(4, errNoAnswer)},
	{"dial timed out", dialError(syscall.ETIMEDOUT), fail(4, errNoAnswer), notSent(3, errNoAnswer), fail(4, errNoAnswer)},

	{"plain HTTP where TLS is due", connection("https", plainHTTP), fail(1, errNoAnswer), notSent(1, errNoAnswer), fail(1, errNoAnswer)},
	{"TLS handshake reset", connection("https", resetConnection), fail(4, errNoAnswer), notSent(3, errNoAnswer), fail(4, errNoAnswer)},
	{"TLS handshake ended", connection("https", closeConnection), fail(4, errNoAnswer), notSent(3, errNoAnswer), fail(4, errNoAnswer)},

	{"reset before the request is read", connection("http", resetConnection), fail(4, errNoAnswer), unknown(1, errNoAnswer), fail(4, errNoAnswer)},
	{"reset after the request", wire(reset), fail(4, errNoAnswer), unknown(1, errNoAnswer), fail(4, errNoAnswer)},
	{"end after the request", wire(sayAndClose("")), fail(4, errNoAnswer), unknown(1, errNoAnswer), fail(4, errNoAnswer)},
	{"transport without events", mute(errMute), fail(4, errNoAnswer, errMute), unknown(1, errNoAnswer, errMute), fail(4, errNoAnswer, errMute)},
	{"transport without events, dial refused", mute(syscall.ECONNREFUSED), fail(4, errNoAnswer), unknown(1, errNoAnswer), fail(4, errNoAnswer)},
	{"transport without events, unknown host name", mute(&net.DNSError{IsNotFound: true}), fail(1, errNoAnswer), unknown(1, errNoAnswer), fail(1, errNoAnswer)},
	{"transport without answer or error", mute(nil), fail(4, errNoAnswer), unknown(1, errNoAnswer), fail(4, errNoAnswer)},

	{"1xx, then an end", wire(sayAndClose(early)), fail(4, errNoAnswer), unknown(1, errNoAnswer), fail(4, errNoAnswer)},
	{"1xx without end", wire(flood("", early)), fail(2, errBadResponse), unknown(1, errBadResponse), fail(2, errBadResponse)},
	{"header without end", wire(flood("HTTP/1.1 200 OK\r\n", "X-Filler: "+strings.Repeat("a", 1000)+"\r\n")), fail(2, errBadResponse), unknown(1, errBadResponse), fail(2, errBadResponse)},
	// What is cut within a line reads as a line of another meaning.
	{"part of a status line", wire(sayAndClose("HTTP/1.1 20")), fail(2, errBadResponse), unknown(1, errBadResponse), fail(2, errBadResponse)},
	{"part of a header", wire(sayAndClose("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")), fail(4, errNoAnswer), unknown(1, errNoAnswer), fail(4, errNoAnswer)},
	{"not HTTP", wire(sayAndClose("SSH-2.0-OpenSSH_9.6\r\n\r\n")), fail(2, errBadResponse), unknown(1, errBadResponse), fail(2, errBadResponse)},
	{"contradicting lengths", wire(sayAndClose("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}")), fail(2, errBadResponse), unknown(1, errBadResponse), fail(2, errBadResponse)},
}

const early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"

func noToken(context.Context) (string, error) { return "", io.EOF }

func plainHTTP(c *net.TCPConn) {
	c.Read(make([]byte, 1))
	sayAndClose("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")(c, 0)
}

// statuses are the rows that a status decides, with one status for each meaning. internal/fault has all statuses.
func statuses() (rows []matrixRow) {
	add := func(code int, lookup, submit, download cell) {
		rows = append(rows, matrixRow{fmt.Sprint("status ", code), status(code), lookup, submit, download})
	}
	for code, is := range map[int]error{
		400: bins.ErrBadRequest, 401: bins.ErrUnauthorized, 403: bins.ErrForbidden, 404: bins.ErrNotFound, 407: bins.ErrForbidden, 409: fault.ErrConflict, 413: bins.ErrTooLarge, 501: bins.ErrServer,
	} {
		add(code, fail(1, is), rejected(1, is), fail(1, is))
	}
	for code, test := range map[int]struct {
		requests int // of a read
		is       error
	}{
		300: {1, errBadResponse}, 304: {1, errBadResponse}, 406: {1, bins.ErrBadRequest}, 408: {3, bins.ErrTimeout}, 421: {2, bins.ErrBadRequest}, 425: {2, bins.ErrBadRequest},
		429: {4, bins.ErrRateLimited}, 499: {3, errBadResponse}, 500: {3, bins.ErrServer}, 503: {4, bins.ErrServer}, 999: {1, errBadResponse},
	} {
		add(code, fail(test.requests, test.is), unknown(1, test.is), fail(test.requests, test.is))
	}
	return rows
}

// TestMatrix is the retry matrix: what each operation makes of each point at
// which it can fail, on real connections. The rows that need time are those of
// TestMatrixInTime.
func TestMatrix(t *testing.T) {
	t.Run("before an answer", func(t *testing.T) { runMatrix(t, beforeAnswer, false) })
	t.Run("certificate", func(t *testing.T) { runMatrix(t, certificates(), false) })
	t.Run("status", func(t *testing.T) { runMatrix(t, statuses(), false) })
	t.Run("answer", func(t *testing.T) { runMatrix(t, answers, false) })
}
