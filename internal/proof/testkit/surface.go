package testkit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/internal/transport"
)

// An Option is the option of every service package.
type Option = transport.Option

// A Surface is what the service packages have in common, as their users reach
// it. The function types of a package name its own interfaces, so its test
// adapts the three that take or return one.
type Surface struct {
	Method string
	Path   string // below the base URL, of what Call requests
	Accept string // a body that makes the call succeed

	// Make makes a client, and one call with it.
	Make func(ctx context.Context, baseURL string, client []Option, call ...Option) error

	StaticToken     func(string) transport.TokenSource
	TokenFunc       func(func(context.Context) (string, error)) transport.TokenSource
	WithTokenSource func(transport.TokenSource) Option
	WithLimiter     func(transport.Limiter) Option

	WithHTTPClient       func(*http.Client) Option
	WithHeader           func(name, value string) Option
	WithUserAgent        func(string) Option
	WithLogger           func(*slog.Logger) Option
	WithMaxRetries       func(int) Option
	WithRetryWait        func(base, limit time.Duration) Option
	WithAttemptTimeout   func(time.Duration) Option
	WithRateLimit        func(rate.Limit, int) Option
	WithMaxResponseBytes func(int64) Option
	WithInsecureHTTP     func() Option
}

type limiterFunc func(context.Context) error

func (f limiterFunc) Wait(ctx context.Context) error { return f(ctx) }

// Check proves that each option of the package has its effect.
func (s Surface) Check(t *testing.T) {
	const card = "4111111111111111"
	t.Run("WithHeader", func(t *testing.T) {
		mock := s.mock(Answer(200, s.Accept))
		err := s.Call(t.Context(), []Option{s.WithHTTPClient(mock.Client()), s.WithHeader("X-Trace", "client")}, s.WithHeader("x-trace", "call"))
		if got := mock.Requests(); err != nil || len(got) != 1 || got[0].Header.Get("X-Trace") != "call" {
			t.Errorf("%v, %v", got, err)
		}
		if err := s.Call(t.Context(), []Option{s.WithHeader("Host", card)}); !errors.Is(err, transport.ErrInvalidArgument) || !strings.Contains(err.Error(), "new client: ") {
			t.Errorf("a header of the library's own: %v", err)
		} else {
			NoLeak(t, err, card)
		}
		NoLeak(t, s.WithHeader("X-Trace", card), card)
	})
	t.Run("WithUserAgent", func(t *testing.T) {
		mock := s.mock(Answer(200, s.Accept))
		err := s.Call(t.Context(), []Option{s.WithHTTPClient(mock.Client())}, s.WithUserAgent("acme-billing/2.1"))
		if got := mock.Requests(); err != nil || !strings.HasPrefix(got[0].Header.Get("User-Agent"), "acme-billing/2.1 carddata-go/") {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("WithTokenSource", func(t *testing.T) {
		mock := s.mock(Answer(200, s.Accept))
		source := s.TokenFunc(func(context.Context) (string, error) { return "fetched", nil })
		client := []Option{s.WithHTTPClient(mock.Client()), s.WithTokenSource(s.StaticToken("fixed"))}
		if err := errors.Join(s.Call(t.Context(), client), s.Call(t.Context(), client, s.WithTokenSource(source))); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"Bearer fixed", "Bearer fetched"} {
			if got := mock.Requests()[i].Header["Authorization"]; len(got) != 1 || got[0] != want {
				t.Errorf("Authorization is %q, not %q", got, want)
			}
		}
		NoLeak(t, s.StaticToken(card), card)
		NoLeak(t, s.WithTokenSource(s.StaticToken(card)), card)
		for _, token := range []string{"", "two words", "line\r\nX-Other: 1", strings.Repeat("k", 9000)} {
			if err := s.Call(t.Context(), []Option{s.WithTokenSource(s.StaticToken(token))}); !errors.Is(err, transport.ErrInvalidArgument) {
				t.Errorf("token %.20q: %v", token, err)
			}
		}
	})
	t.Run("WithMaxRetries", func(t *testing.T) {
		for retries := range 3 {
			// A 429 says that nothing was processed, so that every operation repeats it.
			mock := s.mock(Answer(429, ""))
			err := s.Call(t.Context(), []Option{s.WithHTTPClient(mock.Client()), s.WithRetryWait(0, 0)}, s.WithMaxRetries(retries))
			if got := len(mock.Requests()); got != retries+1 || !errors.Is(err, transport.ErrRateLimited) {
				t.Errorf("%d retries: %d requests, %v", retries, got, err)
			}
		}
	})
	t.Run("WithRetryWait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			elapsed := func(call ...Option) time.Duration {
				mock, began := s.mock(Answer(429, ""), Answer(200, s.Accept)), time.Now()
				if err := s.Call(t.Context(), []Option{s.WithHTTPClient(mock.Client())}, call...); err != nil {
					t.Error(err)
				}
				return time.Since(began)
			}
			if waited := elapsed(s.WithRetryWait(0, 0)); waited != 0 {
				t.Errorf("waited %s", waited)
			}
			if waited := elapsed(); waited == 0 || waited > 5*time.Second {
				t.Errorf("waited %s by default", waited)
			}
		})
		if err := s.Call(t.Context(), nil, s.WithRetryWait(2, 1)); !errors.Is(err, transport.ErrInvalidArgument) {
			t.Errorf("a limit below the base: %v", err)
		}
	})
	t.Run("WithAttemptTimeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			mock, began := s.mock(Silent), time.Now()
			err := s.Call(t.Context(), []Option{s.WithHTTPClient(mock.Client()), s.WithMaxRetries(0)}, s.WithAttemptTimeout(7*time.Second))
			if waited := time.Since(began); waited != 7*time.Second || !errors.Is(err, transport.ErrTimeout) {
				t.Errorf("waited %s, %v", waited, err)
			}
		})
	})
	t.Run("WithLimiter", func(t *testing.T) {
		mock, closed := s.mock(Answer(200, s.Accept)), errors.New("closed")
		err := s.Call(t.Context(), []Option{s.WithHTTPClient(mock.Client())}, s.WithLimiter(limiterFunc(func(context.Context) error { return closed })))
		if !errors.Is(err, transport.ErrLocalLimit) || !errors.Is(err, closed) || len(mock.Requests()) != 0 {
			t.Errorf("%v after %d requests", err, len(mock.Requests()))
		}
	})
	t.Run("WithRateLimit", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		mock := s.mock(Answer(429, ""))
		err := s.Call(ctx, []Option{s.WithHTTPClient(mock.Client()), s.WithRetryWait(0, 0), s.WithRateLimit(rate.Every(time.Hour), 1)})
		if !errors.Is(err, transport.ErrLocalLimit) || !errors.Is(err, context.DeadlineExceeded) || len(mock.Requests()) != 1 {
			t.Errorf("%v after %d requests", err, len(mock.Requests()))
		}
		if err := s.Call(ctx, nil, s.WithRateLimit(1, 1)); !errors.Is(err, transport.ErrInvalidArgument) {
			t.Errorf("given to a call: %v", err)
		}
	})
	t.Run("WithLogger", func(t *testing.T) {
		var log bytes.Buffer
		mock := s.mock(Answer(200, s.Accept))
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		err := s.Call(t.Context(), []Option{s.WithHTTPClient(mock.Client())}, s.WithLogger(logger))
		if err != nil || !strings.Contains(log.String(), "route=") || !strings.Contains(log.String(), "status=200") {
			t.Errorf("%v, log: %s", err, &log)
		}
	})
	t.Run("WithInsecureHTTP", func(t *testing.T) {
		const base = "http://service.example/below"
		mock := NewMock(s.Method, base+s.Path, Answer(200, s.Accept))
		client := []Option{s.WithHTTPClient(mock.Client())}
		if err := s.Make(t.Context(), base, client); !errors.Is(err, transport.ErrInvalidArgument) {
			t.Errorf("http by default: %v", err)
		}
		if err := s.Make(t.Context(), base, append(client, s.WithInsecureHTTP())); err != nil || len(mock.Requests()) != 1 {
			t.Errorf("%v, %v", mock.Requests(), err)
		}
	})
	t.Run("base URL", func(t *testing.T) {
		for _, base := range []string{"", "service.example", "ftp://service.example", "https://user:" + card + "@service.example",
			"https://service.example?key=" + card, "https://service.example#" + card, "https://service.example/../" + card} {
			err := s.Make(t.Context(), base, nil)
			if !errors.Is(err, transport.ErrInvalidArgument) {
				t.Errorf("%q: %v", base, err)
			}
			NoLeak(t, err, card)
		}
		for _, base := range []string{"https://service.example", "https://service.example/", "https://service.example/below/it/"} {
			mock := NewMock(s.Method, strings.TrimRight(base, "/")+s.Path, Answer(200, s.Accept))
			if err := s.Make(t.Context(), base, []Option{s.WithHTTPClient(mock.Client())}); err != nil {
				t.Errorf("%q: %v, %v", base, err, mock.Requests())
			}
		}
	})
	t.Run("WithMaxResponseBytes", func(t *testing.T) {
		if err := s.Call(t.Context(), nil, s.WithMaxResponseBytes(-1)); !errors.Is(err, transport.ErrInvalidArgument) {
			t.Errorf("a negative cap: %v", err)
		}
	})
}

// Base is the address of Mocks by default.
const Base = "https://service.example"

func (s Surface) mock(answers ...httpmock.Responder) *Mock {
	return NewMock(s.Method, Base+s.Path, answers...)
}

// Call is Make at Base.
func (s Surface) Call(ctx context.Context, client []Option, call ...Option) error {
	return s.Make(ctx, Base, client, call...)
}

// Silent never answers.
func Silent(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, context.Cause(req.Context())
}
