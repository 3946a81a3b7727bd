package transport

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox/memnet"
)

type limited struct{ wait func() }

func (l limited) Wait(context.Context) error { l.wait(); return nil }

type slowBody struct {
	io.Reader
	close func()
}

func (b slowBody) Close() error { b.close(); return nil }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Every call ends by its deadline, even if code of the caller ignores its context. A request
// that this code sends later does not arrive. When the code returns, nothing is left behind.
func TestCallersCodeHangs(t *testing.T) {
	const hangs = time.Hour
	wait := func() { time.Sleep(hangs) }
	wrap := func(f func(base http.RoundTripper, r *http.Request) (*http.Response, error)) Option {
		return WithTransport(func(base http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) { return f(base, r) })
		})
	}
	body := func(read func(io.Reader) io.Reader, close func()) Option {
		return wrap(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(r)
			if err == nil {
				resp.Body = slowBody{read(resp.Body), close}
			}
			return resp, err
		})
	}
	secure := httptest.NewTLSServer(nil) // for its certificate
	defer secure.Close()
	same := func(r io.Reader) io.Reader { return r }
	for name, test := range map[string]struct {
		option  Option
		outcome Outcome
		arrived int64
	}{
		"limiter":                 {WithLimiter(limited{wait}), OutcomeNotSent, 0},
		"function before sending": {WithBeforeSend(func(context.Context) error { wait(); return nil }), OutcomeNotSent, 0},
		"wrapper before base": {wrap(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			wait()
			return base.RoundTrip(r)
		}), OutcomeNotSent, 0},
		"wrapper before base, with a context of its own": {wrap(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			wait()
			return base.RoundTrip(r.Clone(context.Background()))
		}), OutcomeNotSent, 0},
		"wrapper after base": {wrap(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(r)
			wait()
			return resp, err
		}), OutcomeUnknown, 1},
		"a wrapper's body": {body(func(io.Reader) io.Reader {
			return readerFunc(func(p []byte) (int, error) { wait(); return copy(p, "late"), io.EOF })
		}, func() {}), OutcomeAccepted, 1},
		"the end of a wrapper's body": {body(same, wait), OutcomeAccepted, 1},
		"proxy function":              {WithProxy(func(*http.Request) (*url.URL, error) { wait(); return nil, nil }), OutcomeNotSent, 0},
		"an own transport": {WithHTTPClient(client(roundTripper(func(*http.Request) (*http.Response, error) {
			wait()
			return reply(200, ""), nil
		}))), OutcomeUnknown, 0},
		"a proxy function of an own transport": {WithHTTPClient(client(&http.Transport{
			Proxy: func(*http.Request) (*url.URL, error) { wait(); return nil, io.EOF }})), OutcomeUnknown, 0},
		"check of a certificate": {WithTLSConfig(&tls.Config{InsecureSkipVerify: true,
			VerifyConnection: func(tls.ConnectionState) error { wait(); return nil }}), OutcomeNotSent, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var arrived atomic.Int64
				listener := memnet.Listen()
				server := &http.Server{ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err == nil && r.Method == http.MethodPost {
						arrived.Add(1)
					}
					io.WriteString(w, "{}")
				})}
				scheme := "http"
				if strings.Contains(name, "certificate") {
					scheme, server.TLSConfig = "https", secure.TLS
					go server.ServeTLS(listener, "", "")
				} else {
					go server.Serve(listener)
				}
				dial := WithDial(func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.Dial(ctx) })
				c, err := New(testService(), scheme+"://127.0.0.1", []Option{dial, WithMaxRetries(0), test.option})
				if err != nil {
					t.Fatal(err)
				}
				for _, call := range []*Call{write(), read()} {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					began := time.Now()
					r := c.Do(ctx, call, nil)
					cancel()
					if took := time.Since(began); took > 10*time.Second+2*returnGrace {
						t.Errorf("%s took %v", call.Operation, took)
					}
					if call.Write && (r.Outcome != test.outcome || (r.Failure == nil) != (test.outcome == OutcomeAccepted)) {
						t.Errorf("%v, %v", r.Outcome, r.err())
					}
				}
				time.Sleep(2 * hangs) // all code of the caller returns, and may send its request
				if arrived.Load() != test.arrived {
					t.Errorf("%d writes arrived, want %d", arrived.Load(), test.arrived)
				}
				server.Close()
				time.Sleep(time.Minute)
			})
		})
	}
}

// A response that comes after the call has ended is closed. An abandoned Read does not write
// to the caller's memory.
func TestLateResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = time.Minute
		content := &body{Reader: strings.NewReader("late")}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		content.ctx = ctx
		c := newClient(t, roundTripper(func(*http.Request) (*http.Response, error) {
			time.Sleep(late)
			return &http.Response{StatusCode: 200, Body: content}, nil
		}))
		if r := c.get(ctx); r.Failure == nil {
			t.Error("succeeded")
		}
		time.Sleep(2 * late)
		synctest.Wait()
		if !content.closed {
			t.Error("the body of the late response was not closed")
		}

		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		resp := &http.Response{Body: slowBody{readerFunc(func(p []byte) (int, error) {
			time.Sleep(late)
			return copy(p, "late"), nil
		}), func() {}}}
		holdBody(ctx, resp)
		memory := make([]byte, 4)
		if n, err := resp.Body.Read(memory); n != 0 || err == nil {
			t.Errorf("read %d, %v", n, err)
		}
		time.Sleep(2 * late)
		if string(memory) != "\x00\x00\x00\x00" {
			t.Errorf("the caller's memory holds %q", memory)
		}
	})
}
