package console

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
)

// What became of a request.
const (
	open     = "open"     // not answered yet
	answered = "answered" // with all that was announced
	cut      = "cut"      // the sandbox ended the connection first
	left     = "left"     // the caller did
)

const maxAnswer = 16 << 10

// An answer is what is sent, as far as the record shows it. It is finished
// before the last of it goes out, so that a caller finds it recorded.
type answer struct {
	http.ResponseWriter
	request  *http.Request
	status   int
	sent     int64
	length   int64 // announced, -1 when it was not
	body     []byte
	finished func(a *answer, state string)
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.length = -1
	if n, err := strconv.ParseInt(a.Header().Get("Content-Length"), 10, 64); err == nil {
		a.length = n
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	a.body = append(a.body, p[:min(len(p), maxAnswer-len(a.body))]...)
	a.sent += int64(len(p))
	if a.sent == a.length {
		a.end(answered)
	}
	n, err := a.ResponseWriter.Write(p)
	a.sent -= int64(len(p) - n)
	if err != nil {
		a.end(left)
	}
	return n, err
}

// Hijack is how the sandbox ends a connection.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.end(a.unfinished())
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) finish() {
	switch {
	case a.status == 0 || a.sent < a.length:
		a.end(a.unfinished())
	default:
		a.end(answered)
	}
}

func (a *answer) unfinished() string {
	if a.request.Context().Err() != nil {
		return left
	}
	return cut
}

func (a *answer) end(state string) {
	if a.finished != nil {
		a.finished(a, state)
		a.finished = nil
	}
}
