package refunds

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

// An Option configures a client. If two set the same thing, the later one counts. Negative numbers and
// durations are refused.
type Option interface{ change() transport.Option }

// A CallOption configures a client or a single call, where it wins over the client's. One of an [Item]
// wins over both.
type CallOption interface {
	Option
	ofCall()
}

// A TokenSource provides the bearer token of every attempt: see Credentials in
// [github.com/carddata/carddata-go].
type TokenSource interface {
	// Token returns the token without the word Bearer. An error ends the call with [ErrCredential].
	Token(ctx context.Context) (string, error)
}

// A Limiter limits the rate of requests. *rate.Limiter is one.
type Limiter interface {
	// Wait returns when one request may be sent. An error ends the call with [ErrLocalLimit].
	Wait(ctx context.Context) error
}

// StaticToken returns a TokenSource for a token that never changes.
func StaticToken(token string) TokenSource { return auth.Static(token) }

// TokenFunc returns a TokenSource that calls f before every attempt, one call at a time.
func TokenFunc(f func(ctx context.Context) (string, error)) TokenSource {
	return auth.Func(f)
}

// CachedToken returns a TokenSource that keeps the token from fetch, renews it before it expires, and
// drops it after a 401. With a zero expires it never expires.
func CachedToken(fetch func(ctx context.Context) (token string, expires time.Time, err error)) TokenSource {
	return auth.Cached(fetch)
}

// WithTransport wraps the library's transport in your own RoundTripper, to instrument or change requests.
// It sees every attempt, with the token, and calls base to send it.
//
//   - A request that it builds needs the context of the original, or it is not sent. A request of its own,
//     as for a token, goes through another client.
//   - If it returns an error without a call of base, as a circuit breaker does, the refund counts as not
//     sent. So it must not send through another transport.
//   - A response that it makes up counts as the service's.
func WithTransport(wrap func(base http.RoundTripper) http.RoundTripper) Option {
	return clientOption(transport.WithTransport(wrap))
}

// WithTLSConfig uses a clone of c, for your own certificate authority or a client certificate. With TLS
// 1.3, a server may refuse that only after a refund was written, which is then unknown: test it with a
// lookup. Nil is refused. The default is the system's authorities.
func WithTLSConfig(c *tls.Config) Option { return clientOption(transport.WithTLSConfig(c)) }

// WithProxy calls proxy for the proxy URL of each request. A nil URL is a direct connection, and a nil
// function no proxy. The default is the environment's proxy for https, and none for http.
func WithProxy(proxy func(*http.Request) (*url.URL, error)) Option {
	return clientOption(transport.WithProxy(proxy))
}

// WithHTTPClient sends through the Transport of c, for fakes in tests. Its Timeout bounds each attempt. In
// production use [WithTransport], [WithTLSConfig] and [WithProxy]: another client may send a refund twice, and proves "not sent" only if its Transport is an
// *http.Transport.
func WithHTTPClient(c *http.Client) Option { return clientOption(transport.WithHTTPClient(c)) }

// WithTokenSource sends a bearer token with each refund. The default is none. Make the source and this
// option once, not for each call.
func WithTokenSource(source TokenSource) CallOption {
	return callOption(transport.WithTokenSource(source))
}

// WithHeader adds a header to every request, such as an idempotency key or an undocumented credential.
// Names that the library sets, and empty values, are refused.
func WithHeader(name, value string) CallOption {
	return callOption(transport.WithHeader(name, value))
}

// WithUserAgent puts a product, such as "acme-billing/2.1", before the library's User-Agent.
func WithUserAgent(product string) Option { return clientOption(transport.WithUserAgent(product)) }

// WithLogger logs to l: see Logs in [github.com/carddata/carddata-go]. Nil, the default, is no log.
func WithLogger(l *slog.Logger) Option { return clientOption(transport.WithLogger(l)) }

// WithMaxRetries limits the retries of a call. Zero turns them off, but SubmitAll still sends again what
// was not recorded. The default is 2.
func WithMaxRetries(n int) CallOption { return callOption(transport.WithMaxRetries(n)) }

// WithRetryWait sets the backoff: a random wait of up to base, which doubles with each retry up to limit.
// With a zero base, a retry does not wait. The default is 200 milliseconds and 5 seconds.
func WithRetryWait(base, limit time.Duration) Option {
	return clientOption(transport.WithRetryWait(base, limit))
}

// WithAttemptTimeout bounds each attempt, from when it is sent to the last byte of the response. A short
// one makes more outcomes unknown. With zero, only the deadline ends an attempt, or the call's 90 seconds.
// The default is 35 seconds.
func WithAttemptTimeout(d time.Duration) CallOption {
	return callOption(transport.WithAttemptTimeout(d))
}

// WithRateLimit limits requests to limit a second, retries included, and burst at once. Clients and calls
// that are given the same option share its limit. The default is no limit.
func WithRateLimit(limit rate.Limit, burst int) CallOption {
	return callOption(transport.WithRateLimit(limit, burst))
}

// WithLimiter calls l before each attempt, in place of [WithRateLimit], such as one limit for several
// processes. An attempt that has then waited for a place in flight calls it again. Nil, the default, is no
// limit.
func WithLimiter(l Limiter) CallOption { return callOption(transport.WithLimiter(l)) }

// WithInsecureHTTP allows http for every host, where others can read what is sent. By default only
// loopback addresses may be http.
func WithInsecureHTTP() Option { return clientOption(transport.WithInsecureHTTP()) }

// WithResubmit states that the service takes records with the same refund_id as one refund, which is not
// documented: ask its operator. A refund with an unknown outcome is then retried, as a lookup is. By
// default it is not.
func WithResubmit() CallOption {
	return callOption(transport.WithResubmit())
}

// WithRefusals states that the service sends these statuses, 400 to 599, only if it has recorded nothing.
// That is not documented: ask its operator. Those of a client and a call add up. The outcome is
// [OutcomeRejected], and 429, 502, 503 and 504 are retried. By default only what the package comment lists
// is a refusal.
func WithRefusals(statuses ...int) CallOption {
	return callOption(transport.WithRefusals(statuses...))
}

// WithBeforeSend calls f before each attempt, when nothing but sending is left, so that a row of yours says
// that the refund has begun: see the Example. If f fails, nothing is sent, and the error matches
// [ErrNotBegun] and that of f. Test for your own "another call has begun" before ActionOf, because that call
// may be sending this refund. SubmitAll runs several f at once, and keeps a refused record to send it again:
// after a kill in between, your row still says that it has begun. Nil, the default, is not called.
func WithBeforeSend(f func(ctx context.Context) error) CallOption {
	return callOption(transport.WithBeforeSend(f))
}

// WithReceiptCheck calls check for each 2xx that would accept a refund, in SubmitAll several at once. After
// its error the outcome is unknown, the refund is not retried, and the error matches [ErrBadResponse] and
// that of check. Nil, the default, accepts what the package comment accepts.
func WithReceiptCheck(check func(*Receipt) error) CallOption {
	var checked func(*transport.Result) error
	if check != nil {
		checked = func(r *transport.Result) error { return check(newReceipt(r)) }
	}
	return callOption(transport.WithWriteCheck(checked))
}

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
