package console

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/memnet"
)

// TestStalledBodiesAreEnded sends a part of a body and no more, in as many ways as
// the body can stall.
func TestStalledBodiesAreEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		first int           // bytes at once
		pause time.Duration // before each of the others
		ended time.Duration
	}{
		"at once":       {0, time.Hour, stall},
		"in the middle": {1000, time.Hour, stall},
		"in a big one":  {smallBody + 1000, time.Hour, stall},
		"drop by drop":  {1, stall - time.Second, longestBody},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := memnet.Listen()
				server := http.Server{Handler: New(Options{})}
				go server.Serve(l)
				defer server.Close()
				conn, err := l.Dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				began, done := time.Now(), make(chan struct{})
				defer close(done)
				go func() {
					fmt.Fprintf(conn, "POST /v1/a/refunds HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n%s",
						strings.Repeat(" ", tc.first))
					for {
						select {
						case <-time.After(tc.pause):
						case <-done:
							return
						}
						if _, err := io.WriteString(conn, " "); err != nil {
							return
						}
					}
				}()
				text, _ := io.ReadAll(conn)
				if took := time.Since(began); !strings.HasPrefix(string(text), "HTTP/1.1 408 ") || took < tc.ended || took > tc.ended+time.Second {
					t.Errorf("after %v: %s", took, text)
				}
			})
		})
	}
}

// TestCallerLeavesInTheBody is recorded as far as it came.
func TestCallerLeavesInTheBody(t *testing.T) {
	for _, framing := range []string{"Content-Length: 100", "Transfer-Encoding: chunked"} {
		s := start(t)
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/a/refunds HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n\r\n", framing)
		if strings.HasPrefix(framing, "T") {
			io.WriteString(conn, "5\r\n")
		}
		io.WriteString(conn, `{"a":`)
		conn.Close()
		stream := s.listen()
		for list := stream.next("snapshot"); len(list.Requests) == 0 || list.Requests[0].State == open; {
			list = stream.next("update")
		}
		if e := s.requests()[0]; e.State != left && e.State != cut || e.Accepted {
			t.Errorf("%s: %+v", framing, e)
		}
	}
}
