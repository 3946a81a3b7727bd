package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/wire"
)

// around returns a wrapper that handles requests with f.
func around(f func(base http.RoundTripper, r *http.Request) (*http.Response, error)) Option {
	return WithTransport(func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return f(base, r) })
	})
}

func passesOn(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	return base.RoundTrip(r)
}

// remade returns a wrapper that builds each request again.
func remade(how string) func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	return func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		return base.RoundTrip(remakes[how](r, bytes.NewReader(body)))
	}
}

// askToken sends a request for a token and nothing else.
func askToken(ctx context.Context, base http.RoundTripper) {
	token, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/token", strings.NewReader("grant_type=client_credentials"))
	if err != nil {
		panic(err)
	}
	token.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	closeBody(base.RoundTrip(token))
}

// What a wrapper may do with a request, and what it may not. It may retry a write until a byte of
// it was written. A request that belongs to no attempt is not sent once there are writes.
func TestWrapper(t *testing.T) {
	type handler = func(base http.RoundTripper, r *http.Request) (*http.Response, error)
	open := errors.New("the breaker is open")
	twice := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		closeBody(base.RoundTrip(r))
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		return base.RoundTrip(again)
	}
	changed := func(change func(*http.Request)) handler {
		return func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			change(r)
			return base.RoundTrip(r)
		}
	}
	fails := func(http.RoundTripper, *http.Request) (*http.Response, error) { return nil, open }
	afterToken := func(ctx func(*http.Request) context.Context, then handler) handler {
		return func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			askToken(ctx(r), base)
			return then(base, r)
		}
	}
	own, none := (*http.Request).Context, func(*http.Request) context.Context { return context.Background() }
	hides := func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
		closeBody(remade("new")(base, r))
		return nil, open
	}
	for name, test := range map[string]struct {
		wrapper handler
		refuses bool // the service refuses connections
		outcome fault.Outcome
		arrived int64
		reads   int64 // of a read through the same wrapper
		is      error // of a write
	}{
		"sends it twice":                     {twice, false, fault.OutcomeUnknown, 1, 2, wire.ErrSentBefore},
		"sends it twice, without connection": {twice, true, fault.OutcomeNotSent, 0, 0, fault.ErrNoResponse},
		"signs the query":                    {changed(func(r *http.Request) { r.URL.RawQuery = "signature=1" }), false, fault.OutcomeAccepted, 1, 1, nil},
		"compresses the body": {changed(func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1 }),
			false, fault.OutcomeAccepted, 1, 1, nil},
		"sends a request of its own":              {remade("new"), false, fault.OutcomeNotSent, 0, 1, fault.ErrInvalidArgument},
		"hides that":                              {hides, false, fault.OutcomeNotSent, 0, 1, open},
		"sends nothing":                           {fails, false, fault.OutcomeNotSent, 0, 0, open},
		"asks for a token":                        {afterToken(own, fails), false, fault.OutcomeUnknown, 0, 0, open},
		"asks for a token without the context":    {afterToken(none, fails), false, fault.OutcomeNotSent, 0, 0, open},
		"sends after a token":                     {afterToken(own, passesOn), false, fault.OutcomeUnknown, 0, 1, wire.ErrSentBefore},
		"sends after a token without the context": {afterToken(none, passesOn), false, fault.OutcomeAccepted, 1, 1, nil},
		"responds itself": {func(http.RoundTripper, *http.Request) (*http.Response, error) { return reply(201, "made up"), nil },
			false, fault.OutcomeAccepted, 0, 0, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{handle: func(c net.Conn, _ *http.Request) {
				io.WriteString(c, "HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
			}}
			c := p.client(t, WithMaxRetries(0), around(test.wrapper))
			p.refuses.Store(test.refuses)
			read := write()
			read.Write, read.Body = false, bytes.Repeat([]byte("{}"), 1000)
			c.Do(t.Context(), read, nil)
			if n := p.requests.Load() - p.own.Load(); n != test.reads {
				t.Errorf("%s: a read arrived %d times", name, n)
			}
			read.Write = true
			r := c.Do(t.Context(), read, nil)
			if n := p.requests.Load() - p.own.Load() - test.reads; r.Outcome != test.outcome || n != test.arrived || !errors.Is(r.err(), test.is) || errors.Is(r.err(), wire.ErrSentBefore) != (test.is == wire.ErrSentBefore) {
				t.Errorf("%s: a write is %v and arrived %d times: %v", name, r.Outcome, n, r.err())
			}
			time.Sleep(2 * time.Second)
		})
	}
}

// remakes are the ways in which wrappers build a request again, for a body. Middleware that signs,
// fails over, or queues does this.
var remakes = map[string]func(r *http.Request, body io.Reader) *http.Request{
	"clone": func(r *http.Request, body io.Reader) *http.Request { return clone(r.Context(), r, body) },
	"clone with another context": func(r *http.Request, body io.Reader) *http.Request {
		return clone(context.Background(), r, body)
	},
	"clone with a later context": func(r *http.Request, body io.Reader) *http.Request {
		return clone(context.WithoutCancel(r.Context()), r, body)
	},
	"clone with a later context, to another host": func(r *http.Request, body io.Reader) *http.Request {
		out := clone(context.WithoutCancel(r.Context()), r, body)
		out.URL.Host = "sérvice.test" // which is not dialled ahead
		return out
	},
	"new with its context": func(r *http.Request, body io.Reader) *http.Request { return remake(r.Context(), r, body) },
	"new with a later context": func(r *http.Request, body io.Reader) *http.Request {
		return remake(context.WithoutCancel(r.Context()), r, body)
	},
	"new": func(r *http.Request, body io.Reader) *http.Request { return remake(context.Background(), r, body) },
}

func clone(ctx context.Context, r *http.Request, body io.Reader) *http.Request {
	made, out := remake(ctx, r, body), r.Clone(ctx)
	out.Body, out.ContentLength = made.Body, made.ContentLength
	return out
}

func remake(ctx context.Context, r *http.Request, body io.Reader) *http.Request {
	out, err := http.NewRequestWithContext(ctx, r.Method, r.URL.String(), body)
	if err != nil {
		panic(err)
	}
	return out
}

// A write that goes through a wrapper arrives at most once. If its outcome is not sent or
// accepted, that is true.
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
		"hangs": func(c net.Conn, _ *http.Request) { io.Copy(io.Discard, c) },
	}
	for _, served := range slices.Sorted(maps.Keys(services)) {
		for _, made := range slices.Sorted(maps.Keys(remakes)) {
			for _, sent := range slices.Sorted(maps.Keys(sendings)) {
				for _, chunked := range []bool{false, true} {
					name := fmt.Sprintf("%s, %s, %s, chunked %t", served, made, sent, chunked)
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
								return remakes[made](r, body)
							})
						}))
						r := c.Do(t.Context(), write(), nil)
						time.Sleep(2 * time.Minute)
						if p.open.Load() > 0 {
							t.Errorf("%s: %d connections stay open", name, p.open.Load())
						}
						arrived := p.requests.Load() - p.own.Load()
						if arrived > 1 || r.Outcome == fault.OutcomeNotSent && arrived > 0 || r.Outcome == fault.OutcomeAccepted && arrived == 0 {
							t.Errorf("%s: arrived %d times and is %v: %v", name, arrived, r.Outcome, r.err())
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
		askToken(r.Context(), base)
		return base.RoundTrip(remake())
	},
}

func closeBody(resp *http.Response, err error) {
	if err == nil {
		resp.Body.Close()
	}
}

// The body of a request that is refused is closed, as that of any other.
func TestRefusedBodyIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &content{Reader: strings.NewReader("{}")}
		p := &peer{}
		c := p.client(t, around(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			again := r.Clone(r.Context())
			again.Body = body
			closeBody(base.RoundTrip(r))
			return base.RoundTrip(again)
		}))
		if r := c.Do(t.Context(), write(), nil); !errors.Is(r.err(), wire.ErrSentBefore) || !body.closed {
			t.Errorf("%v, and the body is closed: %t", r.err(), body.closed)
		}
	})
}
