package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// wire is a server that reads one request from each connection, answers it with
// these bytes, and ends the connection unless hold keeps it.
func wire(t *testing.T, answer string, hold <-chan struct{}) (base string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
					return
				}
				io.WriteString(c, answer)
				if hold != nil {
					<-hold
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestTruncatedStream proves on a socket that a content which is too short never
// ends with io.EOF.
func TestTruncatedStream(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\n"
	content := strings.Repeat("0123456789", 20_000)
	for _, test := range []struct {
		name, answer, want string
		length             int64
		complete, whole    bool // as far as can be told; all but the end mark
	}{
		{"length, complete", head + "Content-Length: 200000\r\n\r\n" + content, content, 200_000, true, false},
		{"length, cut", head + "Content-Length: 200001\r\n\r\n" + content, content, 200_001, false, false},
		{"length, nothing", head + "Content-Length: 5\r\n\r\n", "", 5, false, false},
		{"chunks, complete", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", "abcde", -1, true, false},
		{"chunks, no last one", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n", "abcde", -1, false, false},
		{"chunks, one cut", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabc", "abc", -1, false, false},
		{"chunks, only their end missing", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n", "abcde", -1, false, true},
		{"neither", head + "\r\nabcde", "abcde", -1, true, false},
		{"empty", head + "Content-Length: 0\r\n\r\n", "", 0, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := New(kind(), wire(t, test.answer, nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			r := c.Do(t.Context(), streaming(), nil)
			if r.Failure != nil {
				t.Fatal(r.err())
			}
			defer r.Stream.Close()
			got, err := io.ReadAll(r.Stream)
			if string(got) != test.want || r.Length != test.length {
				t.Errorf("%d bytes, length %d", len(got), r.Length)
			}
			if test.complete {
				if err != nil {
					t.Error(err)
				}
				return
			}
			check(t, err, ErrBadResponse)
			if !test.whole {
				check(t, err, io.ErrUnexpectedEOF)
			}
			if errors.Is(err, ErrTimeout) {
				t.Errorf("nothing timed out: %v", err)
			}
			if n, again := r.Stream.Read(make([]byte, 1)); n != 0 || again != err {
				t.Errorf("reading on: %d, %v", n, again)
			}
		})
	}
}

// TestCancelWhileReading proves on a socket that a read which waits for the
// other side returns when the caller's context ends.
func TestCancelWhileReading(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	c, err := New(kind(), wire(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", hold), []Option{WithAttemptTimeout(0)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := c.Do(ctx, streaming(), nil)
	if r.Failure != nil {
		t.Fatal(r.err())
	}
	defer r.Stream.Close()
	if _, err := io.ReadFull(r.Stream, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	go cancel()
	_, err = r.Stream.Read(make([]byte, 1))
	check(t, err, context.Canceled)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrBadResponse) {
		t.Errorf("the answer was not at fault: %v", err)
	}
}

// TestCloseWhileWaiting proves on a socket that closing neither waits for the
// rest nor fails.
func TestCloseWhileWaiting(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	c, err := New(kind(), wire(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", hold), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := c.Do(t.Context(), streaming(), nil)
	if r.Failure != nil {
		t.Fatal(r.err())
	}
	for range 2 {
		if err := r.Stream.Close(); err != nil {
			t.Error(err)
		}
	}
}
