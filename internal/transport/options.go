package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/limit"
	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/wire"
	"golang.org/x/time/rate"
)

// Settings are the defaults of a service, changed by the options of the client and then by
// those of the call. Each step changes a copy, so the client's settings never change, and
// calls share them without a lock.
//
// Fields that may hold a secret are closures, because fmt follows fields and pointers, even
// unexported ones, but calls no function.
type Settings struct {
	HTTPClient       *http.Client
	source           auth.Source // of newSource
	Limiter          limit.Limiter
	Logger           *slog.Logger
	UserAgent        string
	MaxRetries       int
	WaitBase         time.Duration
	WaitMax          time.Duration
	AttemptTimeout   time.Duration
	MaxResponseBytes int64
	InsecureHTTP     bool
	// ConnectionReuse is how long the connections of reads stay idle before they close. It
	// must be shorter than the server's own limit. 0: each connection serves one request. A
	// write always has its own connection.
	ConnectionReuse time.Duration

	// Resubmit allows retrying a write that may have been processed. The caller states
	// that the service removes duplicates.
	Resubmit bool
	// Refusals are statuses that the service sends only if it has not processed a write. The
	// caller states that.
	Refusals []int
	// BeforeSend runs after every wait of an attempt. An error keeps the attempt from leaving.
	BeforeSend func(context.Context) error
	// WriteCheck may refuse the response of a write that was accepted by its status.
	WriteCheck func(*Result) error

	// NotReady reports which failures mean that the result is not ready, besides 202 and 204.
	// A call asks again every WaitInterval (0: the package's own), for up to WaitLimit.
	NotReady                func(*fault.Failure) bool
	WaitInterval, WaitLimit time.Duration

	// OwnLimiter and OwnCredential report that the last list of options, and not those before,
	// set a limiter, or a token source or a header, which may be a credential.
	OwnLimiter, OwnCredential bool

	headers       map[string]func() string // closures, which hide the values from fmt
	redirectHosts redirectHosts
	network       wire.Config
	ownTransport  string // the name of an option about the library's own transport, if given
	err           error  // the first refusal
	random        await.Jitter
}

// An Option changes settings. The packages give each to a client or to a call with types of
// their own.
type Option func(*Settings)

// checked makes an option from a change. If refusal is not nil, the option is refused.
func checked(refusal error, change func(*Settings)) Option {
	return func(s *Settings) {
		s.refuse(refusal)
		change(s)
	}
}

// ofTransport makes an option about the library's own transport. It cannot be combined with
// WithHTTPClient, because it would have no effect.
func ofTransport(name string, o Option) Option {
	return func(s *Settings) {
		s.ownTransport = name
		o(s)
	}
}

// refuse keeps the first refusal for the caller. Nil is none.
func (s *Settings) refuse(err error) { s.err = cmp.Or(s.err, err) }

// With returns a copy of the settings changed by opts. It checks combinations of options
// after all of them, so their order does not matter.
func (s *Settings) With(opts []Option) (*Settings, error) {
	changed := *s
	changed.headers = maps.Collect(maps.All(s.headers)) // never nil
	changed.OwnLimiter, changed.OwnCredential = false, false
	for i, o := range opts {
		if o == nil {
			return nil, fault.Invalid("option %d is nil", i+1)
		}
		o(&changed)
	}
	_, authorized := changed.headers["Authorization"]
	changed.refuse(fault.Require(!authorized || changed.source == nil, "both a token source and an Authorization header are given"))
	// An unused option would mislead: the client certificate would not be sent, or the proxy
	// not used.
	changed.refuse(fault.Require(changed.HTTPClient == nil || changed.ownTransport == "", "%s and WithHTTPClient are both given", changed.ownTransport))
	return &changed, changed.err
}

// Settings returns the settings of a call with opts.
func (c *Client) Settings(opts []Option) (*Settings, error) {
	if len(opts) == 0 {
		return c.settings, nil
	}
	return c.settings.With(opts)
}

// The packages document these options.
func WithHTTPClient(c *http.Client) Option {
	if c == nil {
		return func(s *Settings) { s.refuse(fault.Invalid("the http.Client is nil")) }
	}
	simulation, ok := c.Transport.(*Simulation)
	if !ok {
		return func(s *Settings) { s.HTTPClient = c }
	}
	return func(s *Settings) {
		s.network.Dial, s.random = simulation.Dial, simulation.Jitter
		if simulation.RoundTripper != nil {
			s.HTTPClient = &http.Client{Transport: simulation.RoundTripper, Timeout: c.Timeout}
		}
	}
}

func WithTransport(wrap func(base http.RoundTripper) http.RoundTripper) Option {
	return ofTransport("WithTransport", checked(fault.Require(wrap != nil, "the function given to WithTransport is nil"), func(s *Settings) { s.network.Wrap = wrap }))
}

func WithTLSConfig(c *tls.Config) Option {
	outdated := c != nil && c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS12
	refusal := cmp.Or(fault.Require(c != nil, "the tls.Config is nil"), fault.Require(!outdated, "the tls.Config excludes TLS 1.2 and later"))
	cloned := c.Clone() // the caller may change c later
	return ofTransport("WithTLSConfig", checked(refusal, func(s *Settings) { s.network.TLS = func() *tls.Config { return cloned } }))
}

// WithProxy(nil) means no proxy, so the setting is a pointer. Without the option, the
// environment's proxy is used.
func WithProxy(proxy func(*http.Request) (*url.URL, error)) Option {
	return ofTransport("WithProxy", func(s *Settings) { s.network.Proxy = &proxy })
}

// WithTokenSource makes the source serial here, so that all users of the option share its turn.
func WithTokenSource(source auth.Source) Option {
	own, err := auth.NewSource(source)
	return checked(err, func(s *Settings) { s.source, s.OwnCredential = own, true })
}

func WithHeader(name, value string) Option {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	refusal := cmp.Or(
		// Allow only tokens of RFC 9110 (5.6.2).
		fault.Require(name != "" && auth.IsVisible(name) && !strings.ContainsAny(name, "\"(),/:;<=>?@[\\]{}"), "a header name is not usable"),
		fault.Require(!reserved[canonical], "header %s is set by the library", canonical),
		// An unset variable gives an empty value. The service would refuse it like a wrong
		// credential.
		fault.Require(value != "", "the value of header %s is empty", canonical),
		fault.Require(isHeaderValue(value), "the value of header %s holds characters that a header cannot carry", canonical),
	)
	return checked(refusal, func(s *Settings) { s.headers[canonical], s.OwnCredential = mask.Hide(value), true })
}

func WithUserAgent(product string) Option {
	return checked(fault.Require(isHeaderValue(product), "the user agent holds characters that a header cannot carry"), func(s *Settings) { s.UserAgent = product })
}

func WithLogger(l *slog.Logger) Option { return func(s *Settings) { s.Logger = l } }

func WithMaxRetries(n int) Option {
	return checked(fault.Require(n >= 0, "the number of retries is negative"), func(s *Settings) { s.MaxRetries = n })
}

func WithRetryWait(base, limit time.Duration) Option {
	return checked(fault.Require(0 <= base && base <= limit, "the retry wait must be 0 <= base <= limit"), func(s *Settings) { s.WaitBase, s.WaitMax = base, limit })
}

func WithAttemptTimeout(d time.Duration) Option {
	return checked(fault.Require(d >= 0, "the attempt timeout is negative"), func(s *Settings) { s.AttemptTimeout = d })
}

// WithRateLimit makes the limiter here, so that all users of the option share it.
func WithRateLimit(limit rate.Limit, burst int) Option {
	// NaN would let every request through, and so is refused. A burst below 1 would let none
	// through.
	refusal := fault.Require(limit > 0 && burst >= 1, "the rate limit must be above 0 and its burst at least 1")
	limiter := WithLimiter(rate.NewLimiter(limit, burst))
	return checked(refusal, limiter)
}

func WithLimiter(l limit.Limiter) Option {
	return func(s *Settings) { s.Limiter, s.OwnLimiter = l, l != nil }
}

func WithInsecureHTTP() Option { return func(s *Settings) { s.InsecureHTTP = true } }

// WithResubmit is exposed as refunds.WithResubmit.
func WithResubmit() Option { return func(s *Settings) { s.Resubmit = true } }

// WithRefusals is exposed by refunds only. It adds to the statuses that others have given.
func WithRefusals(statuses ...int) Option {
	isFailure := func(status int) bool { return 400 <= status && status <= 599 }
	return checked(fault.Require(!slices.ContainsFunc(statuses, func(s int) bool { return !isFailure(s) }), "a status of WithRefusals is not 400 to 599"),
		func(s *Settings) { s.Refusals = slices.Concat(s.Refusals, statuses) })
}

// WithBeforeSend is exposed by refunds only.
func WithBeforeSend(f func(context.Context) error) Option {
	return func(s *Settings) { s.BeforeSend = f }
}

// WithWriteCheck is exposed as refunds.WithReceiptCheck.
func WithWriteCheck(check func(*Result) error) Option {
	return func(s *Settings) { s.WriteCheck = check }
}

// WithRedirectHosts is exposed by updater only, because a redirected POST is never followed.
func WithRedirectHosts(patterns ...string) Option {
	hosts, err := parseRedirectHosts(patterns)
	return checked(err, func(s *Settings) { s.redirectHosts = hosts })
}

// WithNotReady and WithWait are exposed by updater only.
func WithNotReady(check func(*fault.Failure) bool) Option {
	return func(s *Settings) { s.NotReady = check }
}

func WithWait(interval, limit time.Duration) Option {
	return checked(fault.Require(interval >= 0 && limit >= 0, "the interval or the limit of WithWait is negative"),
		func(s *Settings) { s.WaitInterval, s.WaitLimit = interval, limit })
}

// A Simulation, as the Transport of WithHTTPClient, makes runs repeatable. Only internal/proof
// uses it.
type Simulation struct {
	http.RoundTripper // nil: the library's own transport
	// Dial makes the connections of the library's own transport.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Jitter draws the random part of every wait.
	Jitter func(ctx context.Context, below time.Duration) time.Duration
}
