package sandbox

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox/memnet"
)

func TestListenTCPWantsLoopback(t *testing.T) {
	e := New()
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1", "localhost:-1"} {
		if s, err := e.ListenTCP(addr); err == nil {
			s.Close()
			t.Errorf("%q was accepted", addr)
		}
	}
	s, err := e.ListenTCP("localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if ip := s.Addr().(*net.TCPAddr).IP; !ip.IsLoopback() || s.URL() != "http://"+s.Addr().String() {
		t.Errorf("listening on %v, URL %s", s.Addr(), s.URL())
	}
}

func TestCloseWaitsForHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		finished := false
		s := serve(l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			time.Sleep(time.Minute)
			finished = true
		}))
		conn, err := l.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		synctest.Wait()
		s.Close()
		if !finished {
			t.Error("a handler outlived Close")
		}
	})
}
