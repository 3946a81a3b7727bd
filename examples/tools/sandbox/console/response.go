package console

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
)

// The states of a request.
const (
	open     = "open"     // no response yet
	complete = "complete" // the whole response was sent
	cut      = "cut"      // the sandbox ended the connection first
	left     = "left"     // the caller ended it first
)

const maxResponse = 16 << 10

// A response keeps what the record shows. It is recorded before its last byte is sent, so
// that the caller finds it there.
type response struct {
	http.ResponseWriter
	request  *http.Request
	status   int
	sent     int64
	length   int64 // announced; -1: none
	body     []byte
	finished func(a *response, state string)
}

func (a *response) WriteHeader(status int) {
	a.status = status
	a.length = -1
	if n, err := strconv.ParseInt(a.Header().Get("Content-Length"), 10, 64); err == nil {
		a.length = n
	}
	if a.length == 0 || status == http.StatusNoContent || status == http.StatusNotModified {
		a.end(complete) // no byte follows
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *response) Write(p []byte) (int, error) {
	a.body = append(a.body, p[:min(len(p), maxResponse-len(a.body))]...)
	a.sent += int64(len(p))
	if a.sent == a.length {
		a.end(complete)
	}
	n, err := a.ResponseWriter.Write(p)
	a.sent -= int64(len(p) - n)
	if err != nil {
		a.end(left)
	}
	return n, err
}

// Hijack is called by the sandbox to reset the connection.
func (a *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.end(a.unfinished())
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// reason returns the message of the sandbox's own error.
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
