package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// around returns a wrapper that handles requests with f.
func around(f func(base http.RoundTripper, r *http.Request) (*http.Response, error)) Option {
	return WithTransport(func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return f(base, r) })
	})
}

// wrappers are what instrumentation and middleware do to a request.
var wrappers = map[string]func(base http.RoundTripper, r *http.Request) (*http.Response, error){
	"passes on": func(base http.RoundTripper, r *http.Request) (*http.Response, error) { return base.RoundTrip(r) },
	"clones": func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Traceparent", "00-1")
		return base.RoundTrip(r)
	},
	"replaces the context": func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		return base.RoundTrip(r.WithContext(context.Background()))
	},
	"clones without context": func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		return base.RoundTrip(r.Clone(context.WithoutCancel(r.Context())))
	},
	"makes another request": func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		made, err := http.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		made.Header = r.Header
		return base.RoundTrip(made)
	},
}

// The evidence does not depend on the changes that a wrapper makes to a request.
func TestWrappedEvidence(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	for name, wrapper := range wrappers {
		r := clientOf(t, server.URL, around(wrapper)).Do(t.Context(), write(), nil)
		if e := r.Evidence; r.Failure != nil || !e.Traced || !e.Connected || e.BytesWritten < 50 || !e.RequestWritten || !e.ResponseStarted {
			t.Errorf("%s: %+v, %v", name, e, r.err())
		}
		r = clientOf(t, refusing, around(wrapper)).Do(t.Context(), write(), nil)
		if e := r.Evidence; r.Outcome != OutcomeNotSent || !e.Traced || e.Connected || e.BytesWritten != 0 || r.Attempts != 4 {
			t.Errorf("%s, connection refused: %v after %d attempts, %+v", name, r.Outcome, r.Attempts, e)
		}
	}
}

// A call ends with its context even if a wrapper replaces the context of the request.
func TestWrappedCall(t *testing.T) {
	arrived, hang := make(chan bool, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- true
		<-hang
	}))
	defer server.Close()
	defer close(hang)
	for name, wrapper := range wrappers {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-arrived
			cancel()
		}()
		r := clientOf(t, server.URL, around(wrapper)).Do(ctx, write(), nil)
		check(t, r.err(), context.Canceled)
		if r.Outcome != OutcomeUnknown || r.Evidence.BytesWritten < 50 {
			t.Errorf("%s: %v, %+v", name, r.Outcome, r.Evidence)
		}
	}
}

// A wrapper may retry a write until a byte of it was written, and not after that. It may
// always retry a read.
func TestWrapperThatRetries(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		served.Add(1)
		w.WriteHeader(503)
	}))
	defer server.Close()
	for name, wrapper := range wrappers {
		served.Store(0)
		twice := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			closeBody(wrapper(base, r))
			again := r.Clone(r.Context())
			again.Body = io.NopCloser(bytes.NewReader(body))
			return wrapper(base, again)
		}
		r := clientOf(t, server.URL, around(twice)).Do(t.Context(), write(), nil)
		check(t, r.err(), errSentBefore, ErrNoResponse)
		if served.Load() != 1 || r.Outcome != OutcomeUnknown {
			t.Errorf("%s: sent %d times, %v", name, served.Load(), r.Outcome)
		}
		served.Store(0)
		call := write()
		call.Write = false
		clientOf(t, server.URL, around(twice), WithMaxRetries(0)).Do(t.Context(), call, nil)
		if served.Load() != 2 {
			t.Errorf("%s: a read was sent %d times, want 2", name, served.Load())
		}
		r = clientOf(t, refusing, around(twice), WithMaxRetries(0)).Do(t.Context(), write(), nil)
		if r.Outcome != OutcomeNotSent || errors.Is(r.err(), errSentBefore) {
			t.Errorf("%s, connection refused: %v, %v", name, r.Outcome, r.err())
		}
	}
}

// The log of an attempt is written after the wrapper has returned. A logger that sends the
// request then, or later, does not reach the service.
func TestWrapperThatLeaves(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	defer server.Close()
	for name, rebuild := range wrappers {
		var late func() error
		say := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			late = func() error { _, err := rebuild(base, r); return err }
			return reply(501, "made up"), nil
		}
		var during error
		log := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
			if during == nil {
				during = late()
			}
			return len(p), nil
		}), &slog.HandlerOptions{Level: slog.LevelDebug}))
		clientOf(t, server.URL, around(say), WithLogger(log)).Do(t.Context(), write(), nil)
		if after := late(); served.Load() > 0 || during == nil || after == nil {
			t.Errorf("%s: sent %d times, %v, %v", name, served.Load(), during, after)
		}
	}
}

// A request that belongs to no attempt is not sent if it may be a write. A signature in the
// query and a compressed body do no harm.
func TestWrapperThatRebuilds(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	defer server.Close()
	for _, query := range []string{"", "?signature=1"} {
		rebuild := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			again, err := http.NewRequest(r.Method, r.URL.String()+query, r.Body)
			if err != nil {
				return nil, err
			}
			return base.RoundTrip(again)
		}
		r := clientOf(t, server.URL, around(rebuild), WithMaxRetries(0)).Do(t.Context(), write(), nil)
		if check(t, r.err(), errNoAttempt); r.Outcome != OutcomeNotSent || served.Load() > 0 {
			t.Errorf("%v, sent %d times", r.Outcome, served.Load())
		}
		call := write()
		call.Write = false
		if r := clientOf(t, server.URL, around(rebuild)).Do(t.Context(), call, nil); r.Failure != nil {
			t.Error(r.err())
		}
		served.Store(0)
	}
	sign := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.RawQuery = "signature=1"
		return base.RoundTrip(r)
	}
	if r := clientOf(t, server.URL, around(sign)).Do(t.Context(), write(), nil); r.Failure != nil || r.Evidence.BytesWritten < 50 {
		t.Errorf("signed: %v, %+v", r.err(), r.Evidence)
	}
	compress := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1
		return base.RoundTrip(r)
	}
	call := write()
	call.Body = bytes.Repeat([]byte("{}"), 1000)
	if r := clientOf(t, server.URL, around(compress)).Do(t.Context(), call, nil); r.Failure != nil {
		t.Errorf("compressed: %v", r.err())
	}
}

// A wrapper that does not call base has sent nothing. The same holds for a wrapper that sends
// only a request for a token.
func TestWrapperThatSendsNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer server.Close()
	open := errors.New("the breaker is open")
	r := clientOf(t, server.URL, around(func(http.RoundTripper, *http.Request) (*http.Response, error) { return nil, open })).Do(t.Context(), write(), nil)
	check(t, r.err(), open)
	if r.Outcome != OutcomeNotSent || r.Evidence.BytesWritten != 0 {
		t.Errorf("%v, %+v", r.Outcome, r.Evidence)
	}
	for name, ctx := range map[string]func(*http.Request) context.Context{
		"its context": (*http.Request).Context, "no context": func(*http.Request) context.Context { return context.Background() },
	} {
		stranger := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			token, err := http.NewRequestWithContext(ctx(r), http.MethodPost, server.URL+"/token", strings.NewReader("grant_type=client_credentials"))
			if err != nil {
				return nil, err
			}
			token.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
			closeBody(base.RoundTrip(token))
			return nil, open
		}
		r := clientOf(t, server.URL, around(stranger)).Do(t.Context(), write(), nil)
		if r.Outcome != OutcomeNotSent || r.Attempts != 4 {
			t.Errorf("with %s: %v after %d attempts", name, r.Outcome, r.Attempts)
		}
		// The write may follow the request for a token.
		both := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			if _, err := stranger(base, r); err != open {
				return nil, err
			}
			return base.RoundTrip(r)
		}
		if r := clientOf(t, server.URL, around(both)).Do(t.Context(), write(), nil); r.Failure != nil {
			t.Errorf("with %s: %v", name, r.err())
		}
	}
	made := func(http.RoundTripper, *http.Request) (*http.Response, error) { return reply(201, "made up"), nil }
	if r := clientOf(t, server.URL, around(made)).Do(t.Context(), write(), nil); r.Failure != nil || r.Outcome != OutcomeAccepted || string(r.Body) != "made up" {
		t.Errorf("a made-up response: %v, %v", r.Outcome, r.err())
	}
}

// remakes are the ways in which wrappers build a request again, for a URL and a body.
// Middleware that signs, fails over, or queues does this.
var remakes = map[string]func(r *http.Request, url string, body io.Reader) *http.Request{
	"clone": func(r *http.Request, url string, body io.Reader) *http.Request {
		out := r.Clone(r.Context())
		return redirect(out, url, body)
	},
	"clone with another context": func(r *http.Request, url string, body io.Reader) *http.Request {
		return redirect(r.Clone(context.Background()), url, body)
	},
	"copy without Cancel": func(r *http.Request, url string, body io.Reader) *http.Request {
		out := r.Clone(context.WithoutCancel(r.Context()))
		out.Cancel = nil //lint:ignore SA1019 a wrapper may do this
		return redirect(out, url, body)
	},
	"copy without anything": func(r *http.Request, url string, body io.Reader) *http.Request {
		out := r.Clone(context.Background())
		out.Cancel = nil //lint:ignore SA1019 a wrapper may do this
		return redirect(out, url, body)
	},
	"new with its context":     newRequest((*http.Request).Context, true),
	"new with a later context": newRequest(func(r *http.Request) context.Context { return context.WithoutCancel(r.Context()) }, true),
	"new":                      newRequest(func(*http.Request) context.Context { return context.Background() }, true),
	"new without headers":      newRequest(func(*http.Request) context.Context { return context.Background() }, false),
}

func newRequest(ctx func(*http.Request) context.Context, withHeaders bool) func(*http.Request, string, io.Reader) *http.Request {
	return func(r *http.Request, url string, body io.Reader) *http.Request {
		out, err := http.NewRequestWithContext(ctx(r), r.Method, url, body)
		if err != nil {
			panic(err)
		}
		if withHeaders {
			out.Header = r.Header.Clone()
		}
		return out
	}
}

// redirect changes the URL and the body of a request.
func redirect(r *http.Request, url string, body io.Reader) *http.Request {
	made, err := http.NewRequest(r.Method, url, body)
	if err != nil {
		panic(err)
	}
	r.URL, r.Host, r.Body, r.ContentLength = made.URL, made.Host, made.Body, made.ContentLength
	return r
}

// readdressed are URLs that may lead to the same service.
var readdressed = map[string]func(url string) string{
	"as it is":           func(url string) string { return url },
	"another host":       func(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) },
	"a host in capitals": func(url string) string { return strings.Replace(url, "127.0.0.1", "SERVICE.test", 1) },
	"a port":             func(url string) string { return strings.Replace(url, "127.0.0.1", "127.0.0.1:80", 1) },
	"a path prefix":      func(url string) string { return strings.Replace(url, "127.0.0.1", "127.0.0.1/gateway", 1) },
	"a path in capitals": func(url string) string {
		return "http://127.0.0.1" + strings.ToUpper(strings.TrimPrefix(url, "http://127.0.0.1"))
	},
	"a query":           func(url string) string { return url + "?signature=1" },
	"a host in Unicode": func(url string) string { return strings.Replace(url, "127.0.0.1", "sérvice.test", 1) },
	"another path":      func(string) string { return "http://127.0.0.1/" },
}

// A write that goes through a wrapper arrives at most once. If its outcome is not sent or
// accepted, that is true. With -short, each service meets each way to build and to send a
// request, but only some of the addresses.
func TestOneAttemptOneSending(t *testing.T) {
	services := map[string]func(net.Conn, *http.Request){
		"accepts":               nil,
		"breaks the connection": func(c net.Conn, _ *http.Request) { c.Close() },
		"fails":                 func(c net.Conn, _ *http.Request) { io.WriteString(c, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n") },
		"redirects": func(c net.Conn, _ *http.Request) {
			io.WriteString(c, "HTTP/1.1 303 See\r\nLocation: /status\r\nContent-Length: 0\r\n\r\n")
		},
		"redirects with a body": func(c net.Conn, _ *http.Request) {
			io.WriteString(c, "HTTP/1.1 307 There\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n")
		},
		"responds after a while": func(c net.Conn, _ *http.Request) { time.Sleep(2 * time.Second); io.WriteString(c, accepted) },
	}
	addresses, n := slices.Sorted(maps.Keys(readdressed)), 0
	for _, served := range slices.Sorted(maps.Keys(services)) {
		for _, made := range slices.Sorted(maps.Keys(remakes)) {
			for _, sent := range slices.Sorted(maps.Keys(sendings)) {
				some := addresses
				if n++; testing.Short() {
					some = []string{addresses[n%len(addresses)], addresses[(n+n/len(addresses)+1)%len(addresses)]}
				}
				for i, address := range some {
					chunked := (n+i)%2 == 0
					synctest.Test(t, func(t *testing.T) {
						p := &peer{handle: services[served], dialTook: 20 * time.Millisecond}
						c := p.client(t, WithRetryWait(0, 0), WithMaxRetries(2), WithAttemptTimeout(time.Second), around(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
							text, err := io.ReadAll(r.Body)
							if err != nil {
								return nil, err
							}
							return sendings[sent](base, r, func() *http.Request {
								body := io.Reader(bytes.NewReader(text))
								if chunked {
									body = io.MultiReader(body)
								}
								return remakes[made](r, readdressed[address](r.URL.String()), body)
							})
						}))
						r := c.Do(t.Context(), write(), nil)
						time.Sleep(2 * time.Minute)
						arrived := p.requests.Load() - p.own.Load()
						if arrived > 1 || r.Outcome == OutcomeNotSent && arrived > 0 || r.Outcome == OutcomeAccepted && arrived == 0 {
							t.Errorf("%s, %s, %s, chunked %t, %s: arrived %d times and is %v: %v", served, made, address, chunked, sent, arrived, r.Outcome, r.err())
						}
					})
				}
			}
		}
	}
}

// sendings are the times at which a wrapper sends a request, and how often.
var sendings = map[string]func(base http.RoundTripper, r *http.Request, remake func() *http.Request) (*http.Response, error){
	"twice": func(base http.RoundTripper, r *http.Request, remake func() *http.Request) (*http.Response, error) {
		closeBody(base.RoundTrip(remake()))
		return base.RoundTrip(remake())
	},
	"until it succeeds": func(base http.RoundTripper, r *http.Request, remake func() *http.Request) (resp *http.Response, err error) {
		for range 3 {
			if resp, err = base.RoundTrip(remake()); err == nil && resp.StatusCode < 300 {
				return resp, nil
			}
		}
		return resp, err
	},
	"by a client with a timeout": func(base http.RoundTripper, r *http.Request, remake func() *http.Request) (*http.Response, error) {
		client := &http.Client{Transport: base, Timeout: 500 * time.Millisecond}
		if resp, err := client.Do(remake()); err == nil {
			return resp, nil
		}
		return client.Do(remake())
	},
	"at once": func(base http.RoundTripper, r *http.Request, remake func() *http.Request) (*http.Response, error) {
		results := make(chan error, 3)
		for range 3 {
			out := remake()
			go func() {
				resp, err := base.RoundTrip(out)
				if err == nil {
					resp.Body.Close()
				}
				results <- err
			}()
		}
		return nil, errors.Join(<-results, <-results, <-results, io.ErrUnexpectedEOF)
	},
	"when it has left": func(base http.RoundTripper, r *http.Request, remake func() *http.Request) (*http.Response, error) {
		out := remake()
		time.AfterFunc(10*time.Millisecond, func() { closeBody(base.RoundTrip(out)) })
		return nil, io.ErrUnexpectedEOF
	},
	"and leaves while it connects": func(base http.RoundTripper, r *http.Request, remake func() *http.Request) (*http.Response, error) {
		out := remake()
		go func() { closeBody(base.RoundTrip(out)) }()
		time.Sleep(10 * time.Millisecond)
		return nil, io.ErrUnexpectedEOF
	},
	"from a queue": func(base http.RoundTripper, r *http.Request, remake func() *http.Request) (*http.Response, error) {
		out, done := remake(), make(chan *http.Response, 1)
		time.AfterFunc(900*time.Millisecond, func() {
			resp, err := base.RoundTrip(out)
			if err == nil {
				done <- resp
			}
		})
		select {
		case resp := <-done:
			return resp, nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	},
	"after a request for a token": func(base http.RoundTripper, r *http.Request, remake func() *http.Request) (*http.Response, error) {
		token, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://127.0.0.1/token", strings.NewReader("grant_type=client_credentials"))
		if err != nil {
			return nil, err
		}
		token.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		closeBody(base.RoundTrip(token))
		return base.RoundTrip(remake())
	},
}

func closeBody(resp *http.Response, err error) {
	if err == nil {
		resp.Body.Close()
	}
}
