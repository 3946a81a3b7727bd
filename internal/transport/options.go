package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/adaptive"
)

// Settings are what options change: a service's defaults, then the options of the
// client, then those of the call, each changing a copy. So a client's settings never
// change once it is made, and calls share them without a lock.
//
// What may hold a secret is in a closure, because fmt follows fields and pointers, of
// unexported fields too, and calls no function.
type Settings struct {
	HTTPClient       *http.Client
	credential       *credential
	Limiter          Limiter
	Logger           *slog.Logger
	UserAgent        string
	MaxRetries       int
	WaitBase         time.Duration
	WaitMax          time.Duration
	AttemptTimeout   time.Duration
	MaxResponseBytes int64
	InsecureHTTP     bool
	// ConnectionReuse is how long an idle connection is kept, which has to be shorter than
	// the server keeps it; 0: each connection serves one request.
	ConnectionReuse time.Duration

	// RepeatUnknown lets a write be repeated although an earlier attempt may
	// have been processed. It is the caller's word that the service removes
	// duplicates.
	RepeatUnknown bool
	// WriteCheck may refuse the response of a write that was accepted by its status.
	WriteCheck func(*Result) error

	// ResumeTimeout is how long a broken stream is resumed without progress. The
	// two below let a stream be what it is otherwise refused for.
	ResumeTimeout  time.Duration
	EncodedContent bool
	HTMLContent    bool

	headers       map[string]func() string // closures, out of the reach of fmt
	redirectHosts redirectHosts
	proxy         *func(*http.Request) (*url.URL, error)
	tls           func() *tls.Config // a closure, as it holds a private key
	wrap          func(http.RoundTripper) http.RoundTripper
	ownTransport  string // the option that is about the library's own transport, if one was given
	perCall       bool
	err           error                                                        // the first refusal
	random        func(ctx context.Context, below time.Duration) time.Duration // nil: rand.N
}

// Option is exposed as bins.Option, refunds.Option and updater.Option. Its
// method is unexported, so only this module can make one.
type Option interface{ apply(*Settings) }

type option func(*Settings)

func (f option) apply(s *Settings) { f(s) }

// checked makes an option of a change, and of why its argument is refused, or nil.
func checked(refusal error, change func(*Settings)) Option {
	return option(func(s *Settings) {
		s.refuse(refusal)
		change(s)
	})
}

// clientOnly makes an option that has no meaning for a single call.
func clientOnly(name string, o Option) Option {
	return option(func(s *Settings) {
		s.refuse(require(!s.perCall, "%s configures a client and cannot be given to a call", name))
		o.apply(s)
	})
}

// ofTransport makes an option about the library's own transport, which would have
// no effect beside WithHTTPClient.
func ofTransport(name string, o Option) Option {
	return clientOnly(name, option(func(s *Settings) {
		s.ownTransport = name
		o.apply(s)
	}))
}

// refuse keeps the first refusal, which is the one that the caller sees. Nil is none.
func (s *Settings) refuse(err error) { s.err = cmp.Or(s.err, err) }

// with returns the settings changed by opts, leaving s as it was. What two options say
// together is looked at once all have been applied, whatever their order.
func (s *Settings) with(opts []Option, perCall bool) (*Settings, error) {
	changed := *s
	changed.headers = maps.Collect(maps.All(s.headers)) // and never nil
	changed.perCall = perCall
	for i, o := range opts {
		if o == nil {
			return nil, Invalid("option %d is nil", i+1)
		}
		o.apply(&changed)
	}
	_, authorized := changed.headers["Authorization"]
	changed.refuse(require(!authorized || changed.credential == nil, "both a token source and an Authorization header are given"))
	// An option about a transport that is not used would be a promise that nobody keeps:
	// the client certificate that is not sent, or the proxy that is not asked.
	changed.refuse(require(changed.HTTPClient == nil || changed.ownTransport == "", "%s and WithHTTPClient are both given", changed.ownTransport))
	return &changed, changed.err
}

// WithHTTPClient is documented by the packages that expose it, as are all
// options below.
func WithHTTPClient(c *http.Client) Option {
	return clientOnly("WithHTTPClient", checked(require(c != nil, "the http.Client is nil"), func(s *Settings) { s.HTTPClient = c }))
}

func WithTransport(wrap func(base http.RoundTripper) http.RoundTripper) Option {
	return ofTransport("WithTransport", checked(require(wrap != nil, "the function given to WithTransport is nil"), func(s *Settings) { s.wrap = wrap }))
}

func WithTLSConfig(c *tls.Config) Option {
	outdated := c != nil && c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS12
	refusal := cmp.Or(require(c != nil, "the tls.Config is nil"), require(!outdated, "the tls.Config excludes TLS 1.2 and later"))
	cloned := c.Clone() // here and not later: the caller may go on changing it
	return ofTransport("WithTLSConfig", checked(refusal, func(s *Settings) { s.tls = func() *tls.Config { return cloned } }))
}

// WithProxy takes nil for no proxy, which is why the setting is a pointer: without the
// option, the proxy is the environment's.
func WithProxy(proxy func(*http.Request) (*url.URL, error)) Option {
	return ofTransport("WithProxy", option(func(s *Settings) { s.proxy = &proxy }))
}

// WithConnectionReuse is exposed by refunds, whose connections serve one request
// by default.
func WithConnectionReuse(idle time.Duration) Option {
	return ofTransport("WithConnectionReuse", checked(require(idle > 0, "the time that idle connections are kept must be above 0"),
		func(s *Settings) { s.ConnectionReuse = idle }))
}

// WithTokenSource makes the credential here, so that all who are given this option share
// it, and the source is asked one question at a time.
func WithTokenSource(source TokenSource) Option {
	credential, err := newCredential(source)
	return checked(err, func(s *Settings) { s.credential = credential })
}

// reserved headers follow from the call itself; changing one breaks it. A Content-Length
// or Transfer-Encoding of the caller's would let a proxy and the service disagree about
// where the request ends.
var reserved = map[string]bool{
	"Accept-Encoding": true, "Connection": true, "Content-Length": true, "Content-Type": true, "Host": true,
	"Range": true, "If-Range": true, "Trailer": true, "Transfer-Encoding": true, "User-Agent": true, "X-Merchant-Id": true,
}

func WithHeader(name, value string) Option {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	refusal := cmp.Or(
		// What is no token by RFC 9110 (5.6.2).
		require(name != "" && IsVisible(name) && !strings.ContainsAny(name, "\"(),/:;<=>?@[\\]{}"), "a header name is not usable"),
		require(!reserved[canonical], "header %s is set by the library", canonical),
		// It would be sent, and what an unset variable leaves would look like a credential
		// that the service refuses.
		require(value != "", "the value of header %s is empty", canonical),
		require(isHeaderValue(value), "the value of header %s holds characters that a header cannot carry", canonical),
	)
	return checked(refusal, func(s *Settings) { s.headers[canonical] = hide(value) })
}

func WithUserAgent(product string) Option {
	return checked(require(isHeaderValue(product), "the user agent holds characters that a header cannot carry"), func(s *Settings) { s.UserAgent = product })
}

func WithLogger(l *slog.Logger) Option { return option(func(s *Settings) { s.Logger = l }) }

func WithMaxRetries(n int) Option {
	return checked(require(n >= 0, "the number of retries is negative"), func(s *Settings) { s.MaxRetries = n })
}

func WithRetryWait(base, limit time.Duration) Option {
	return checked(require(0 <= base && base <= limit, "the retry wait must be 0 <= base <= limit"), func(s *Settings) { s.WaitBase, s.WaitMax = base, limit })
}

func WithAttemptTimeout(d time.Duration) Option {
	return checked(require(d >= 0, "the attempt timeout is negative"), func(s *Settings) { s.AttemptTimeout = d })
}

// WithRateLimit is of a client alone: a limiter for one call would limit nothing.
func WithRateLimit(limit rate.Limit, burst int) Option {
	// A NaN limit, which is not above 0, would let everything through, and a burst
	// below 1 nothing.
	return clientOnly("WithRateLimit", checked(require(limit > 0 && burst >= 1, "the rate limit must be above 0 and its burst at least 1"),
		func(s *Settings) { s.limit(rate.NewLimiter(limit, burst)) }))
}

func WithLimiter(l Limiter) Option { return option(func(s *Settings) { s.limit(l) }) }

func WithAdaptiveRate(start, most rate.Limit) Option {
	start = cmp.Or(start, min(1, most))
	return clientOnly("WithAdaptiveRate", checked(require(start > 0 && most >= start && most < rate.Inf,
		"the adaptive rate must be 0 <= Start <= Max, and Max above 0 and finite"),
		func(s *Settings) { s.limit(adaptive.New(start, most)) }))
}

// limit replaces the limiter. Two ideas of what the rate should be are refused,
// but a call may have its own: an adaptive limiter learns from the responses to all
// requests that pass it, and would mistake another limiter's pace for the service's.
func (s *Settings) limit(l Limiter) {
	_, was := s.Limiter.(*adaptive.Limiter)
	_, is := l.(*adaptive.Limiter)
	s.refuse(require(s.perCall || s.Limiter == nil || was == is, "WithAdaptiveRate is given beside another limit"))
	s.Limiter = l
}

func WithMaxResponseBytes(n int64) Option {
	return checked(require(n >= 0, "the response size limit is negative"), func(s *Settings) { s.MaxResponseBytes = n })
}

func WithInsecureHTTP() Option {
	return clientOnly("WithInsecureHTTP", option(func(s *Settings) { s.InsecureHTTP = true }))
}

// WithRepeatUnknown is exposed as refunds.WithResubmit.
func WithRepeatUnknown() Option { return option(func(s *Settings) { s.RepeatUnknown = true }) }

// WithWriteCheck is exposed as refunds.WithReceiptCheck.
func WithWriteCheck(check func(*Result) error) Option {
	return option(func(s *Settings) { s.WriteCheck = check })
}

// WithRedirectHosts is exposed by updater alone, as a redirected POST is never
// followed.
func WithRedirectHosts(patterns ...string) Option {
	hosts, err := parseRedirectHosts(patterns)
	return checked(err, func(s *Settings) { s.redirectHosts = hosts })
}

// WithResumeTimeout is exposed by updater, as are the two below.
func WithResumeTimeout(d time.Duration) Option {
	return checked(require(d >= 0, "the resume timeout is negative"), func(s *Settings) { s.ResumeTimeout = d })
}

func WithEncodedContent() Option { return option(func(s *Settings) { s.EncodedContent = true }) }

func WithHTMLContent() Option { return option(func(s *Settings) { s.HTMLContent = true }) }

// WithJitter draws the random part of every wait from f. No package exposes it: it
// is for simulations that must be repeated exactly.
func WithJitter(f func(ctx context.Context, below time.Duration) time.Duration) Option {
	return option(func(s *Settings) { s.random = f })
}

// isHeaderValue refuses also what net/http would trim, and so change.
func isHeaderValue(value string) bool {
	return strings.Trim(value, " \t") == value && IsVisible(strings.NewReplacer(" ", "", "\t", "").Replace(value))
}

// CheckOptions refuses options that a call could not be made with, for one that
// makes many calls.
func (c *Client) CheckOptions(opts []Option) error {
	_, err := c.settings.with(opts, true)
	return err
}

// HasLimiter tells whether options bring a limiter.
func HasLimiter(opts []Option) bool {
	s, err := new(Settings).with(opts, true)
	return err == nil && s.Limiter != nil
}
