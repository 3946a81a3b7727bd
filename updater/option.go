package updater

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/transport"
)

// An Option adjusts a client, or a single call of it.
//
// Given to NewClient it holds for every call; given to a call it holds for that
// call and wins. Of two that set the same thing, the later wins. The sibling
// packages' options are the same type, so that one list can serve all three.
type Option = transport.Option

// A TokenSource provides the bearer credential. It is asked before every
// attempt, by many goroutines at once, so that a source which fetches its token
// should keep it until it expires. When the service answers 401 it is asked
// once more, and a token other than the refused one is tried; callers that were
// refused with the same token share that question.
//
// How a token is obtained is not documented by the service. [StaticToken] and
// [TokenFunc] make sources.
type TokenSource interface {
	Token(ctx context.Context) (string, error)
}

// A Limiter gives leave to send one request. *rate.Limiter is one, and so is
// anything that shares a quota between processes. Wait must return an error
// rather than wait beyond the deadline of ctx.
type Limiter interface {
	Wait(ctx context.Context) error
}

// StaticToken returns a TokenSource of one unchanging token, such as an API key.
// An empty or unprintable token is refused by whatever takes the source. The
// token does not show when the source is printed.
func StaticToken(token string) TokenSource { return transport.StaticToken(token) }

// TokenFunc returns a TokenSource that calls f.
func TokenFunc(f func(ctx context.Context) (string, error)) TokenSource {
	return transport.TokenFunc(f)
}

// WithHTTPClient sends requests through the Transport of c: for proxies, mutual
// TLS, tracing, or a fake in tests. The client is never changed, and its idle
// connections are never closed. Its Timeout bounds each attempt as
// [WithAttemptTimeout] does, if it is the shorter one; its Jar and CheckRedirect
// are not used. A client without a Transport means http.DefaultTransport.
//
// By default each client has a transport of its own: HTTP/1.1, TLS 1.2 or
// later, the environment's proxy for https, answers' headers up to 64 KiB, 5
// seconds each to connect and for the TLS handshake. With c none of that holds,
// nor the time that idle connections are kept, which is 2 seconds for refunds and
// none for downloads: give refunds a Transport with a short IdleConnTimeout, as a
// kept connection that the service has closed leaves an outcome unknown. It
// configures a client, and is refused by a call.
func WithHTTPClient(c *http.Client) Option { return transport.WithHTTPClient(c) }

// WithTokenSource sends the source's token as a bearer credential in the
// Authorization header, in place of any other source.
func WithTokenSource(source TokenSource) Option { return transport.WithTokenSource(source) }

// WithHeader sends a further header with every request, such as a correlation id
// or a credential that the service asks for beyond its documentation. A second
// value for the same name replaces the first. Names that the library sets
// itself are refused, and so is Authorization beside a TokenSource. The value
// does not show when the option or the client is printed.
func WithHeader(name, value string) Option { return transport.WithHeader(name, value) }

// WithUserAgent puts a product, such as "acme-billing/2.1", in front of the
// library's own User-Agent, so that the service can tell who calls. By default,
// and with "", the library's own is sent alone.
func WithUserAgent(product string) Option { return transport.WithUserAgent(product) }

// WithLogger logs attempts and calls (debug), retries, resumes of a download and
// failed calls (info), a spent retry budget (warn), and how the content of a
// download ended (debug, or info if it broke). The events hold service, operation,
// route template, attempt, attempts, status, queued (the time before an attempt,
// for the limiter, a pause or a token), duration, wait, bytes, result, outcome and
// request id, and nothing else. By default, and with nil, nothing is logged.
func WithLogger(l *slog.Logger) Option { return transport.WithLogger(l) }

// WithMaxRetries bounds how often a call is repeated after its first attempt;
// what may be repeated at all is up to the operation. Zero turns repetition off,
// and with it the resuming of a broken download.
// The default is 3 for bins and updater and 2 for refunds.
func WithMaxRetries(n int) Option { return transport.WithMaxRetries(n) }

// WithRetryWait sets the wait before a repetition: a random time up to base,
// doubled for each repetition so far, but never above limit. After a 429
// without Retry-After base is at least one second. Zero for both repeats at
// once. The default is 200 milliseconds and 5 seconds.
//
// A Retry-After of the service lengthens the wait, by a little more than it says,
// and is not bounded by limit. Up to a minute all calls of the client obey it. A
// call that was asked to wait longer, or beyond its deadline, ends and reports
// it, and it is for the caller to wait; other calls go on after the minute.
func WithRetryWait(base, limit time.Duration) Option { return transport.WithRetryWait(base, limit) }

// WithAttemptTimeout bounds each attempt, from the moment the limiter gave leave
// to the last byte of the answer; of a download, to the answer's header, and
// then each wait for more of its body. A shorter one for refunds makes more
// outcomes unknown. Zero is no bound but that of the call: the deadline of the
// context, or the time that a call without one may take. The default is 10 seconds
// for bins, 35 for refunds, 30 for updater.
func WithAttemptTimeout(d time.Duration) Option { return transport.WithAttemptTimeout(d) }

// WithRateLimit lets the client send at most limit requests a second, repetitions
// included, and burst of them at once. An idle client can send up to limit +
// burst within one second: choose burst 1 to stay below a strict limit. An
// attempt that would have to wait beyond its deadline fails at once with
// [ErrLocalLimit]. The limit must be above 0 and the burst at least 1.
//
// The service's limits are not documented, so by default there is none. It
// configures a client, and is refused by a call. Each client has a limiter of its
// own; [WithLimiter] shares one.
func WithRateLimit(limit rate.Limit, burst int) Option { return transport.WithRateLimit(limit, burst) }

// WithLimiter asks l before each attempt: to share one limit between clients or
// processes, or to give a call another one. Nil is no limit, the default.
func WithLimiter(l Limiter) Option { return transport.WithLimiter(l) }

// WithMaxResponseBytes bounds the body of an answer, after decompression; a
// longer one fails with [ErrResponseTooLarge] or, for an accepted refund, is cut
// off. Zero is no bound. The default is 8 MiB for bins and 64 KiB for refunds;
// downloads are streamed and have none. Bodies of errors are always kept up to
// 64 KiB.
func WithMaxResponseBytes(n int64) Option { return transport.WithMaxResponseBytes(n) }

// WithInsecureHTTP allows a base URL with http:// to a host beyond this machine.
// Credentials and card numbers then travel readable. By default only loopback
// addresses may be http. It configures a client, and is refused by a call.
func WithInsecureHTTP() Option { return transport.WithInsecureHTTP() }
