package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// serve runs h until the test ends; the bubble then proves that no goroutine is
// left.
func serve(t *testing.T, h http.HandlerFunc) (client *http.Client, dials *atomic.Int64) {
	t.Helper()
	l := Listen()
	srv := &http.Server{Handler: h}
	go srv.Serve(l)
	dials = new(atomic.Int64)
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		dials.Add(1)
		return l.Dial(ctx)
	}}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		srv.Close()
	})
	return &http.Client{Transport: tr}, dials
}

func TestHTTPKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, dials := serve(t, func(w http.ResponseWriter, r *http.Request) {
			c := http.NewResponseController(w)
			c.EnableFullDuplex()
			c.Flush()
			io.Copy(w, r.Body)
		})
		for _, body := range []string{"one", "two"} {
			resp, err := client.Post("http://host/", "text/plain", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(got) != body || err != nil {
				t.Errorf("echo %q, %v; want %q", got, err, body)
			}
			if len(resp.TransferEncoding) != 1 {
				t.Errorf("transfer encoding %v, want chunked", resp.TransferEncoding)
			}
			synctest.Wait()
		}
		if n := dials.Load(); n != 1 {
			t.Errorf("%d dials for two requests, want one", n)
		}
	})
}

func TestHTTPStreaming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 8 << 20
		client, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).EnableFullDuplex()
			io.Copy(w, r.Body)
		})
		up, w := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://host/", up)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			io.CopyN(w, zeros{}, size)
			w.Close()
		}()
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
			t.Errorf("echoed %d bytes, %v; want %d", n, err, size)
		}
	})
}

func TestHTTPCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Time, 1)
		client, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			ended <- time.Now()
		})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://host/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Do(req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		if d := (<-ended).Sub(start); d != 30*time.Second {
			t.Errorf("the handler saw the client go after %v, want 30s", d)
		}
	})
}

func TestHTTPReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			c.(*Conn).Reset()
		})
		if _, err := client.Get("http://host/"); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v, want ECONNRESET", err)
		}
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
