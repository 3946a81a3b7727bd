package transport

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
)

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
	body := func(read func(io.Reader) io.Reader, close func()) Option {
		return around(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(r)
			if err == nil {
				resp.Body = slowBody{read(resp.Body), close}
			}
			return resp, err
		})
	}
	same := func(r io.Reader) io.Reader { return r }
	for name, test := range map[string]struct {
		option  Option
		outcome fault.Outcome
		arrived int64
	}{
		"limiter":                 {WithLimiter(limiterFunc(func(context.Context) error { wait(); return nil })), fault.OutcomeNotSent, 0},
		"function before sending": {WithBeforeSend(func(context.Context) error { wait(); return nil }), fault.OutcomeNotSent, 0},
		"wrapper before base": {around(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			wait()
			return base.RoundTrip(r)
		}), fault.OutcomeNotSent, 0},
		"wrapper before base, with a context of its own": {around(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			wait()
			return base.RoundTrip(r.Clone(context.Background()))
		}), fault.OutcomeNotSent, 0},
		"wrapper after base": {around(func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(r)
			wait()
			return resp, err
		}), fault.OutcomeUnknown, 1},
		"a wrapper's body": {body(func(io.Reader) io.Reader {
			return readerFunc(func(p []byte) (int, error) { wait(); return copy(p, "late"), io.EOF })
		}, func() {}), fault.OutcomeAccepted, 1},
		"the end of a wrapper's body": {body(same, wait), fault.OutcomeAccepted, 1},
		"proxy function":              {WithProxy(func(*http.Request) (*url.URL, error) { wait(); return nil, nil }), fault.OutcomeNotSent, 0},
		"an own transport": {WithHTTPClient(client(roundTripper(func(*http.Request) (*http.Response, error) {
			wait()
			return reply(200, ""), nil
		}))), fault.OutcomeUnknown, 0},
		"a proxy function of an own transport": {WithHTTPClient(client(&http.Transport{
			Proxy: func(*http.Request) (*url.URL, error) { wait(); return nil, io.EOF }})), fault.OutcomeUnknown, 0},
		"check of a certificate": {WithTLSConfig(&tls.Config{InsecureSkipVerify: true,
			VerifyConnection: func(tls.ConnectionState) error { wait(); return nil }}), fault.OutcomeNotSent, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &peer{secure: strings.Contains(name, "certificate")}
				c := p.client(t, WithMaxRetries(0), test.option)
				for _, call := range []*Call{write(), read()} {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					began := time.Now()
					r := c.Do(ctx, call, nil)
					cancel()
					if took := time.Since(began); took > 10*time.Second+2*await.ReturnGrace {
						t.Errorf("%s took %v", call.Operation, took)
					}
					if call.Write && (r.Outcome != test.outcome || (r.Failure == nil) != (test.outcome == fault.OutcomeAccepted)) {
						t.Errorf("%v, %v", r.Outcome, r.err())
					}
				}
				time.Sleep(2 * hangs) // all code of the caller returns, and may send its request
				if p.writes.Load() != test.arrived {
					t.Errorf("%d writes arrived, want %d", p.writes.Load(), test.arrived)
				}
			})
		})
	}
}

// A response that comes after the call has ended is closed.
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
	})
}
