package updater

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/transport"
)

// An Option adjusts a client, or a single call of it.
//
// An option of NewClient applies to every call. An option of a call applies to that
// call and wins. If two options set the same thing, the later one wins. A call refuses
// WithTransport, WithTLSConfig, WithProxy, WithHTTPClient, WithInsecureHTTP,
// WithRateLimit, WithAdaptiveRate and refunds.WithConnectionReuse.
//
// Packages bins, refunds and updater share this type, so one list of options can serve
// all three. An option that a package does not have has no effect there. The only
// exception is refunds.WithConnectionReuse: it sets how long a client of any package
// keeps idle connections.
type Option = transport.Option

// A TokenSource provides the bearer credential. Token is
// called before every attempt, one call at a time, so a source that fetches its token
// should cache it until it expires. If Token does not return, the client's call still
// ends at its deadline and matches [ErrCredential]; later calls wait until Token returns.
//
// After a 401, Token is called once more, and a different token is tried. Calls that were
// refused with the same token share the one that replaces it. A source that caches its
// token should have a method Refused(token string), which is called first: the source
// then has to return another token.
//
// How a token is obtained is not documented. [StaticToken], [CachedToken] and [TokenFunc]
// make sources.
type TokenSource interface {
	// Token returns the token without the word Bearer. An error, an empty or an
	// unprintable token ends the call with ErrCredential.
	Token(ctx context.Context) (string, error)
}

// A Limiter limits the rate of requests. *rate.Limiter is one; your own can share a quota
// between processes.
type Limiter interface {
	// Wait returns when one request may be sent. It must return an error instead of
	// waiting beyond the deadline of ctx. After an error nothing is sent: see
	// [ErrLocalLimit].
	Wait(ctx context.Context) error
}

// StaticToken returns a TokenSource of a token that never changes, such as an API key.
// NewClient or the call that uses it refuses an empty or unprintable token. Printing the
// source does not show the token.
func StaticToken(token string) TokenSource { return transport.StaticToken(token) }

// TokenFunc returns a TokenSource that calls f before every attempt. It caches nothing:
// see [CachedToken].
func TokenFunc(f func(ctx context.Context) (string, error)) TokenSource {
	return transport.TokenFunc(f)
}

// CachedToken returns a TokenSource that caches the token from fetch until shortly before
// it expires:
//
//   - All callers wait for one fetch. Its context has the values of the caller that
//     began it, and ends when all callers have given up.
//   - A token is renewed in the background in the last tenth to fifth of its lifetime, at
//     a random point; calls keep using it. Such a fetch may take up to a minute, and is
//     repeated if it fails. The first one may take as long as the callers wait.
//   - A token that the service refuses with 401 is dropped, and the call is retried with
//     a new one: a revoked token costs one more request.
//
// A zero expires means that the token does not expire. An error of fetch is not cached:
// the calls that waited fail with it and [ErrCredential], and the next call fetches
// again. Printing the source does not show the token.
func CachedToken(fetch func(ctx context.Context) (token string, expires time.Time, err error)) TokenSource {
	return transport.CachedToken(fetch)
}

// WithTransport wraps the library's transport in your own RoundTripper, to instrument or
// change requests. NewClient calls wrap once. The RoundTripper that it returns sees every
// attempt, and must call base to send it. The URL holds account or job ids, and the
// header the credential: take care what is recorded. examples/telemetry makes traces this
// way.
//
//	WithTransport(func(base http.RoundTripper) http.RoundTripper { return otelhttp.NewTransport(base) })
//
// All guarantees of the library's transport hold: see [WithHTTPClient]. Once a byte of
// a refund was written, base refuses to send it again in the same attempt. If base was
// not called, the attempt counts as not sent and may be repeated: a wrapper that sends
// through another transport, such as http.DefaultTransport, can repeat a refund. The
// wrapper may send its own requests through base, such as one for a token, but if the
// attempt then fails, the refund counts as perhaps sent. So it does if the wrapper
// returns before base. A refund that is rebuilt has to keep the context or the Cancel
// channel of its request, or base refuses it; a call whose request is rebuilt without
// them can outlast its deadline.
//
// A response that the wrapper makes up counts as the service's: if it is a 2xx, a refund
// is accepted that the service has never seen.
//
// NewClient only: a call refuses it. It is also refused beside [WithHTTPClient], and if
// wrap is nil or returns nil.
func WithTransport(wrap func(base http.RoundTripper) http.RoundTripper) Option {
	return transport.WithTransport(wrap)
}

// WithTLSConfig uses c for TLS connections, for example with your own certificate
// authority (RootCAs) or a client certificate (Certificates, or GetClientCertificate for
// one that is renewed). c is cloned. A MinVersion
// below TLS 1.2 is raised to TLS 1.2, a MaxVersion below TLS 1.2 is refused, and
// NextProtos is ignored because connections use HTTP/1.1. The default is the system's
// certificate authorities and no client certificate.
//
// What c's VerifyConnection or VerifyPeerCertificate refuses, as certificate pinning
// does, counts as an untrusted certificate: it is not retried, and [Error.Cause]
// returns its error.
//
// With TLS 1.3, a server may refuse the client certificate after the request was written.
// A refund then has an unknown outcome. Test certificates with a harmless lookup, or with
// MaxVersion set to TLS 1.2.
//
// NewClient only: a call refuses it. It is also refused beside [WithHTTPClient], and if c
// is nil.
func WithTLSConfig(c *tls.Config) Option { return transport.WithTLSConfig(c) }

// WithProxy sends each request through the proxy URL that the function returns for it, or
// directly if that is nil; http.ProxyURL makes such a function. If the base URL is http,
// the proxy can read the requests. A nil function is no proxy. The default is the
// environment's proxy (HTTPS_PROXY, NO_PROXY) for https, and none for http.
//
// NewClient only: a call refuses it. It is also refused beside [WithHTTPClient].
func WithProxy(proxy func(*http.Request) (*url.URL, error)) Option {
	return transport.WithProxy(proxy)
}

// WithHTTPClient replaces the library's transport with the Transport of c. It is meant for
// fakes in tests. To wrap the transport, or to set certificates or a proxy, use
// [WithTransport], [WithTLSConfig] and [WithProxy] instead, which keep what c loses:
//
//	                       the library's transport       with c
//	proof of "not sent"    by the bytes written          if c's transport reports httptrace events
//	                                                     and no connection was made, else none
//	second send            never within one attempt      HTTP/1.1 retries and HTTP/2 are up to c
//	protocol               HTTP/1.1                      up to c
//	TLS                    1.2 and later                 up to c
//	response header        up to 64 KiB                  up to c (net/http: 10 MiB)
//	connect, handshake     5 seconds each                up to c (net/http: none)
//	refunds' connections   one for each request          kept, so that one which the service closes
//	                                                     leaves an outcome unknown
//	downloads' connections one for each request          kept
//	proxy                  the environment's, for https  up to c
//
// c is never changed, and its idle connections are never closed. Its Timeout bounds each
// attempt if it is shorter than [WithAttemptTimeout]; its Jar and CheckRedirect are not
// used. If c has no Transport, http.DefaultTransport is used. NewClient only: a call
// refuses it.
func WithHTTPClient(c *http.Client) Option { return transport.WithHTTPClient(c) }

// WithTokenSource sends the source's token as Authorization: Bearer, and replaces any
// other source. The default is the source given to NewClient; refunds have none.
//
// Make the source once, not for each call. A Token that hangs holds one goroutine for
// each source from [TokenFunc] or [CachedToken], but one for each option or client with
// a source of your own type. For your own type, make the option once, too, and give it
// to all clients and calls.
func WithTokenSource(source TokenSource) Option { return transport.WithTokenSource(source) }

// WithHeader adds a header to every request, such as a correlation id or a credential that
// is not documented. A second value for the same name replaces the first. Names that the
// library sets itself are refused, and so is Authorization beside a TokenSource, and an
// empty value, which is what an unset environment variable leaves. Printing the option or
// the client does not show the value.
func WithHeader(name, value string) Option { return transport.WithHeader(name, value) }

// WithUserAgent puts a product, such as "acme-billing/2.1", before the library's own
// User-Agent, so that the service can identify the caller. By default, and with "", only
// the library's own is sent.
func WithUserAgent(product string) Option { return transport.WithUserAgent(product) }

// WithLogger logs to l. By default, and with nil, nothing is logged. examples/telemetry
// makes metrics of the events, for which its handler accepts debug. The messages are
//
//   - debug: "attempt"; "call", if it succeeded; "content", if a download was read whole
//   - info: "retry"; "resume"; "call", if it failed; "content", if a download broke; and
//     "rate", when an adaptive rate has doubled or a 429 has changed it
//   - warn: "retry budget spent"; and "drift", once per process for each kind and place:
//     an "unknown member", a member of "another type", a response that took the slower
//     "fallback decoder", or a "deprecation" or "sunset" header
//
// Each request of a bulk call is a call, and so is each resume of a download. An
// invalid argument is no event, nor is a record with refunds.ErrSuspended, nor what
// DownloadFile finds in a content, such as a wrong digest. Each request for a job that
// is not ready is a call that failed. So for a metric of what failed, count the errors
// that are returned.
//
// The attributes are service, operation, route template, attempt, attempts, status, queued
// (the wait for a token, the limiter and Retry-After), duration, wait, bytes, rate (in
// requests a second), result (in words), condition (of what failed: one of the names that
// [Error.Condition] returns), outcome, request_id, kind and place, and nothing else.
// queued, duration and wait are a time.Duration, which slog's JSON handler writes in
// nanoseconds. A place is a member's path, in which a name that may be somebody's number
// is "*".
func WithLogger(l *slog.Logger) Option { return transport.WithLogger(l) }

// WithMaxRetries limits the retries of a call after its first attempt. Which failures are
// retried depends on the operation: see Retries in the package comment. Zero turns off
// retries and the resuming of broken downloads; a negative n is refused. The default is 3
// for bins and updater, and 2 for refunds.
func WithMaxRetries(n int) Option { return transport.WithMaxRetries(n) }

// WithRetryWait sets the backoff: a random wait of up to base, which doubles with each
// retry, but never more than limit. After a 429 without Retry-After, base is at least one
// second. If base is zero, a retry does not wait. A negative base, or one above limit, is
// refused. The default is 200 milliseconds and 5 seconds.
//
// limit does not apply to a Retry-After: the wait is then a little longer than the service
// asked for. All calls of the client wait for it, for up to a minute. A call that was
// asked to wait for longer than a minute, or beyond its deadline, fails and reports the
// wait in Error.RetryAfter.
func WithRetryWait(base, limit time.Duration) Option { return transport.WithRetryWait(base, limit) }

// WithAttemptTimeout bounds each attempt: from the end of the wait for the limiter to the
// last byte of the response. For a download it bounds the wait for the response header,
// and then each wait for more of the body. For refunds, a short timeout makes more
// outcomes unknown. Zero sets no timeout for an attempt: only the context's deadline, or
// the call timeout without one, applies. A negative d is refused. The default is 10
// seconds for bins, 35 for refunds, and 30 for updater.
func WithAttemptTimeout(d time.Duration) Option { return transport.WithAttemptTimeout(d) }

// WithRateLimit limits the client to limit requests a second, retries included, and burst
// requests at once. An idle client can send up to limit + burst requests within one
// second: use a burst of 1 to stay below a strict limit. An attempt that would have to
// wait beyond its deadline fails at once with [ErrLocalLimit]. limit must be above 0, and
// burst at least 1.
//
// The service's rate limits are not documented, so the default is no limit. NewClient
// only: a call refuses it. Each client has its own limiter; share one with [WithLimiter].
// WithRateLimit and WithLimiter replace each other: the later one counts.
func WithRateLimit(limit rate.Limit, burst int) Option { return transport.WithRateLimit(limit, burst) }

// WithLimiter calls l before each attempt, to share one limit between clients or
// processes, or to use another one for a call. examples/fleet shares one through Redis.
// WithLimiter and [WithRateLimit] replace each other: the later one counts. Nil is no
// limit, which is the default.
func WithLimiter(l Limiter) Option { return transport.WithLimiter(l) }

// AdaptiveRate holds the bounds of [WithAdaptiveRate].
type AdaptiveRate struct {
	Start rate.Limit // first rate, in requests a second; zero is 1
	Max   rate.Limit // highest rate, in requests a second; above 0, and not below Start
}

// WithAdaptiveRate finds the rate that the service allows, because it is not documented.
// It doubles the rate until the first 429, and then stays close to
// the rate that was accepted between refusals. It settles within a minute or 200 requests,
// whichever is later, and follows a limit that changes. Each doubling and
// each change after a 429 is logged.
//
// Each 429 costs its call a retry. It proves that the request was rejected, even for a
// refund. If several clients use the same limit, they do not share it fairly: give them
// one [Limiter] instead. The option does not suit a limit that never allows two
// requests close together.
//
// NewClient only: a call refuses it. It is also refused beside [WithRateLimit] and
// [WithLimiter]. Each client has its own rate. The default is no limit.
func WithAdaptiveRate(r AdaptiveRate) Option { return transport.WithAdaptiveRate(r.Start, r.Max) }

// WithMaxResponseBytes limits the body of a response, in bytes after decompression. A
// longer body fails with [ErrResponseTooLarge]; if a refund was accepted, the body is cut
// off instead. Zero is no limit; a negative n is refused. The default is 8 MiB for bins
// and 64 KiB for refunds; downloads are streamed and have no limit. Up to 64 KiB of an
// error response are always kept.
func WithMaxResponseBytes(n int64) Option { return transport.WithMaxResponseBytes(n) }

// WithInsecureHTTP allows an http base URL for a host other than this machine.
// Credentials and card numbers are then sent unencrypted. By default only loopback
// addresses may be http. NewClient only: a call refuses it.
func WithInsecureHTTP() Option { return transport.WithInsecureHTTP() }

// WithRedirectHosts follows redirects to these hosts, such as an object storage that keeps
// the results. A host is "storage.example", or "*.storage.example" for all hosts below it,
// with a port if it is not 443 ("storage.example:8443").
//
// Redirects to these hosts are followed over https only. At most five redirects in a
// row are followed. The access token, the merchant id and the headers of [WithHeader]
// are not sent to these hosts, and they cannot redirect back to the service. A broken
// download is resumed at the service, which redirects again.
//
// By default, and without hosts, only redirects within the service's own scheme, host and
// port are followed; any other ends the call with [ErrRedirect].
func WithRedirectHosts(hosts ...string) Option { return transport.WithRedirectHosts(hosts...) }

// WithResumeTimeout bounds how long a broken download is resumed without progress:
// another 64 KiB, or the end of the content. Time that the caller takes between two
// Reads does not count. The download then fails with the error of the last resume. A
// resume that hangs, such as in a token source or a limiter, is canceled with
// [ErrTimeout] at that time, or when its attempts would have ended without redirects,
// if that is later: after 7 minutes with the defaults. That does not apply if
// [WithAttemptTimeout] is zero. A longer timeout outlasts longer outages; to bound the
// whole download, give ctx a deadline. Zero is no timeout; a negative d is refused. The
// default is 5 minutes. From the sixth resume in a row on, each waits at least a
// second.
func WithResumeTimeout(d time.Duration) Option { return transport.WithResumeTimeout(d) }

// WithEncodedContent accepts content with a Content-Encoding, such as gzip, although the
// request asks for none. The content is returned encoded: decode it as
// Download.ContentEncoding or File.ContentEncoding says. Lengths, digests and resumes
// apply to the encoded content. By default such a response fails with [ErrBadResponse].
func WithEncodedContent() Option { return transport.WithEncodedContent() }

// WithHTMLContent accepts content of type text/html or application/xhtml+xml, for a
// service that labels its CSV that way. By default such a response fails with
// [ErrBadResponse], because it is usually the login or error page of a proxy.
func WithHTMLContent() Option { return transport.WithHTMLContent() }
