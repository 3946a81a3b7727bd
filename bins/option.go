package bins

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/transport"
)

// An Option configures a client, and only NewClient takes it. If two options set the same thing,
// the later one counts. A negative number or duration is refused with [ErrInvalidArgument].
// Printing an option, a token source or a client shows no secret.
type Option interface{ change() transport.Option }

// A CallOption configures a call. It is an [Option], too: given to NewClient, it holds for every
// call. One that is given to a call wins.
type CallOption interface {
	Option
	ofCall()
}

// A TokenSource provides the bearer token. How to obtain one is not documented.
//
// Token is called before every attempt, one call at a time. After a 401 it is called once
// more, and a different token is tried. A source that caches its token should have a method
// Refused(token string), which is called before that: it drops this token, and keeps a newer
// one.
type TokenSource interface {
	// Token returns the token without the word Bearer, and ends with ctx. An error, an empty or an
	// unprintable token ends the call with ErrCredential.
	Token(ctx context.Context) (string, error)
}

// A Limiter limits the rate of requests. *rate.Limiter is one.
type Limiter interface {
	// Wait returns when one request may be sent, or an error instead of waiting beyond the
	// deadline of ctx. After an error nothing is sent: see [ErrLocalLimit].
	Wait(ctx context.Context) error
}

// StaticToken returns a TokenSource for a token that never changes, such as an API key. An
// empty or unprintable token is refused by NewClient or the call that uses it.
func StaticToken(token string) TokenSource { return auth.Static(token) }

// TokenFunc returns a TokenSource that calls f before every attempt, one call at a time, and caches
// nothing. If f takes a while, the client sends no faster: use [CachedToken].
func TokenFunc(f func(ctx context.Context) (string, error)) TokenSource {
	return auth.Func(f)
}

// CachedToken returns a TokenSource that caches the token from fetch until shortly before it
// expires. If expires is zero, it never does.
//
//   - All callers wait for one fetch. Its context has the values of the first caller, and
//     ends after 30 seconds, even if the callers end before: the next one gets the token.
//   - In the last tenth to fifth of its lifetime a token is renewed in the background, while
//     calls keep using it.
//   - A token that the service refuses with 401 is dropped, and the call is retried with a
//     new one.
//   - If fetch fails, the calls that waited fail with its error and [ErrCredential], and the
//     next call fetches again.
func CachedToken(fetch func(ctx context.Context) (token string, expires time.Time, err error)) TokenSource {
	return auth.Cached(fetch)
}

// WithTransport wraps the library's transport in your own RoundTripper, to instrument or change
// requests. NewClient calls wrap once. Your RoundTripper sees every attempt, with the token in the
// header, and must call base to send it. A response that it makes up counts as the service's.
//
//	WithTransport(func(base http.RoundTripper) http.RoundTripper { return otelhttp.NewTransport(base) })
func WithTransport(wrap func(base http.RoundTripper) http.RoundTripper) Option {
	return clientOption(transport.WithTransport(wrap))
}

// WithTLSConfig uses a clone of c, for your own certificate authority or a client certificate.
// What c's own checks refuse is not retried, and [Error.Cause] returns their error. A connection
// keeps its certificates while it is used: to rotate them at once, make a new client. Nil is
// refused. The default is the system's authorities.
func WithTLSConfig(c *tls.Config) Option { return clientOption(transport.WithTLSConfig(c)) }

// WithProxy calls proxy for the proxy URL of each request, as [http.ProxyURL] makes it. A nil URL is
// a direct connection, and a nil function no proxy. The default is the environment's proxy
// (HTTPS_PROXY, NO_PROXY) for https, and none for http, where a proxy can read the requests.
func WithProxy(proxy func(*http.Request) (*url.URL, error)) Option {
	return clientOption(transport.WithProxy(proxy))
}

// WithHTTPClient sends through the Transport of c, for fakes in tests. Its Timeout bounds each
// attempt, if it is shorter than [WithAttemptTimeout]; its Jar and CheckRedirect are not used. In
// production use [WithTransport], [WithTLSConfig] and [WithProxy], which keep the limits of TLS,
// header and connecting.
func WithHTTPClient(c *http.Client) Option { return clientOption(transport.WithHTTPClient(c)) }

// WithTokenSource replaces the source given to NewClient. Make the source and this option once, not
// for each call.
func WithTokenSource(source TokenSource) CallOption {
	return callOption(transport.WithTokenSource(source))
}

// WithHeader adds a header to every request, such as a correlation id or an undocumented
// credential. Refused are names that the library sets, Authorization with a TokenSource, and an
// empty value, which is what an unset environment variable leaves.
func WithHeader(name, value string) CallOption {
	return callOption(transport.WithHeader(name, value))
}

// WithUserAgent puts a product, such as "acme-billing/2.1", before the library's own
// User-Agent.
func WithUserAgent(product string) Option { return clientOption(transport.WithUserAgent(product)) }

// WithLogger logs to l. With nil, the default, nothing is logged. The messages are
//
//   - debug: "attempt"; "call" that succeeded, or was not sent because the service is down;
//     "content" of a download that was read whole
//   - info: "call" that failed; "retry"; "pause", when the service asks calls to wait or is
//     down; "resume" after a pause; "reconnect" of a broken download; "content" that broke
//   - warn: "retry budget spent"; "results lost" by leaving the loop of SubmitAll
//
// Each request of a bulk call, each resume of a download and each request for a job that is
// not ready is a "call". To count failures, count the errors that are returned.
//
// The attributes are service, operation, route (without ids), attempt, attempts, status, queued
// (before the attempt was sent; in a call the sum, if it is over a second), duration, wait, until,
// bytes, result (in words), condition (of [Error.Condition]), outcome and request_id.
// examples/engines/telemetry makes metrics of them.
func WithLogger(l *slog.Logger) Option { return clientOption(transport.WithLogger(l)) }

// WithMaxRetries limits the retries of a call: package [github.com/carddata/carddata-go] says after
// what it is retried. Zero turns retries off, but LookupAll still sends cards again. The default is 3.
func WithMaxRetries(n int) CallOption { return callOption(transport.WithMaxRetries(n)) }

// WithRetryWait sets the backoff: a random wait of up to base, which doubles with each retry up to
// limit, but not above a quarter of the time before the deadline. After a 429, base is at least one
// second, and the deadline does not shorten the wait. A Retry-After replaces it. If base is zero, a
// retry does not wait. A base above limit is refused. The default is 200 milliseconds and 5 seconds.
func WithRetryWait(base, limit time.Duration) Option {
	return clientOption(transport.WithRetryWait(base, limit))
}

// WithAttemptTimeout bounds each attempt, from the end of the limiter's wait to the last byte of the
// response. With zero, only the deadline ends an attempt, or the call's 30 seconds. The default is
// 10 seconds.
func WithAttemptTimeout(d time.Duration) CallOption {
	return callOption(transport.WithAttemptTimeout(d))
}

// WithRateLimit limits requests to limit a second, retries included, and burst at once. All
// clients and calls that are given the same option share its limit, so make it once, not for
// each call. After a rest, limit + burst can leave within one second: use a burst of 1 below a
// strict limit. An attempt that would wait beyond its deadline fails at once with [ErrLocalLimit].
// The default is no limit: the service documents none.
func WithRateLimit(limit rate.Limit, burst int) CallOption {
	return callOption(transport.WithRateLimit(limit, burst))
}

// WithLimiter calls l before each attempt, and replaces [WithRateLimit]. It may share one limit
// between processes, as examples/engines/redis does. Nil, the default, is no limit.
func WithLimiter(l Limiter) CallOption { return callOption(transport.WithLimiter(l)) }

// WithInsecureHTTP allows http for hosts other than this machine. Credentials and card numbers
// are then sent unencrypted. By default only loopback addresses may be http.
func WithInsecureHTTP() Option { return clientOption(transport.WithInsecureHTTP()) }

type (
	clientOption transport.Option
	callOption   transport.Option
)

func (o clientOption) change() transport.Option { return transport.Option(o) }
func (o callOption) change() transport.Option   { return transport.Option(o) }
func (callOption) ofCall()                      {}

// changes are what the options do; nil for an option that is nil.
func changes[O Option](options []O) []transport.Option {
	list := make([]transport.Option, len(options))
	for i, o := range options {
		if Option(o) != nil {
			list[i] = o.change()
		}
	}
	return list
}
