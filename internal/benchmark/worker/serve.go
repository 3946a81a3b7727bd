package main

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/internal/benchmark/process"
	"github.com/carddata/carddata-go/internal/benchmark/service"
)

// serve is a server on the loopback until its standard input ends.
func serve(o process.ServerOptions) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	counted := &countedListener{Listener: l, delay: o.ConnectionDelay}
	mux := http.NewServeMux()
	mux.HandleFunc(process.ConnectionsPath, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // each of these is one more
		fmt.Fprint(w, counted.made.Load()-counted.asked.Add(1))
	})
	mux.Handle("/updater/", content(o.Bytes))
	mux.HandleFunc("/v1/{account}/refunds", accept)
	s := &service.Service{Latency: o.Latency}
	switch {
	case o.Tiny:
		s.Response = service.Tiny
	case o.Short:
		s.Response = service.Short
	}
	mux.Handle("/", responses(s))

	server := httptest.NewUnstartedServer(mux)
	server.Listener.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that hang up are part of the work
	server.Listener = counted
	ready := process.Server{}
	if o.TLS {
		server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		server.StartTLS()
		ready.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	} else {
		server.Start()
	}
	ready.URL = server.URL
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// responses passes requests on to a service.
func responses(s *service.Service) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := s.RoundTrip(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.Header().Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body) // whoever asked may be gone
	})
}

// accept takes a refund.
func accept(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"status":"accepted"}`)
}

// content sends so many bytes.
func content(bytes int64) http.Handler {
	piece := make([]byte, 1<<20)
	for i := range piece {
		piece[i] = byte(i * 7 >> 3)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.FormatInt(bytes, 10))
		for left := bytes; left > 0; {
			n, err := w.Write(piece[:min(left, int64(len(piece)))])
			if err != nil {
				return
			}
			left -= int64(n)
		}
	})
}

type countedListener struct {
	net.Listener
	delay       time.Duration
	made, asked atomic.Int64
}

func (l *countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.made.Add(1)
	return &slowConn{Conn: c, delay: l.delay}, nil
}

// A slowConn takes its time over the first bytes, as round trips would.
type slowConn struct {
	net.Conn
	delay time.Duration
}

func (c *slowConn) Read(p []byte) (int, error) {
	if c.delay > 0 {
		time.Sleep(c.delay)
		c.delay = 0
	}
	return c.Conn.Read(p)
}
