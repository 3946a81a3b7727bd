package console

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"
)

// What became of a request.
const (
	open     = "open"     // no response yet
	complete = "complete" // with all that was announced
	cut      = "cut"      // the sandbox ended the connection first
	left     = "left"     // the caller did
)

const (
	maxResponse = 16 << 10
	unread      = time.Minute // after which a caller who reads nothing is left
)

// A response is what is sent, as far as the record shows it. It is finished
// before the last of it goes out, so that a caller finds it recorded.
type response struct {
	http.ResponseWriter
	request  *http.Request
	status   int
	sent     int64
	length   int64 // announced, -1 when it was not
	body     []byte
	finished func(a *response, state string)
}

func (a *response) WriteHeader(status int) {
	a.status = status
	a.length = -1
	if n, err := strconv.ParseInt(a.Header().Get("Content-Length"), 10, 64); err == nil {
		a.length = n
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *response) Write(p []byte) (int, error) {
	a.body = append(a.body, p[:min(len(p), maxResponse-len(a.body))]...)
	a.sent += int64(len(p))
	if a.sent == a.length {
		a.end(complete)
	}
	http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(unread))
	n, err := a.ResponseWriter.Write(p)
	a.sent -= int64(len(p) - n)
	if err != nil {
		a.end(left)
	}
	return n, err
}

// Hijack is how the sandbox ends a connection.
func (a *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.end(a.unfinished())
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// reason is the message of an error of the sandbox's own.
func (a *response) reason() string {
	var body struct{ Error struct{ Message string } }
	json.Unmarshal(a.body, &body)
	return text(body.Error.Message)
}

func (a *response) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *response) finish() {
	switch {
	case a.status == 0 || a.sent < a.length:
		a.end(a.unfinished())
	default:
		a.end(complete)
	}
}

func (a *response) unfinished() string {
	if a.request.Context().Err() != nil {
		return left
	}
	return cut
}

func (a *response) end(state string) {
	if a.finished != nil {
		a.finished(a, state)
		a.finished = nil
	}
}
