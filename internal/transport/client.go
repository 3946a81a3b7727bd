package transport

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/limit"
	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/wire"
)

// A Service is the fixed configuration of a package.
type Service struct {
	Name        string // the package's name, for logs
	Route       string // path of the endpoint; a base URL must not end in it
	Defaults    Settings
	CallTimeout time.Duration // timeout of a call without a deadline in its context; 0: none
}

// A Client is safe for concurrent use. Only its pauses and its retry budget change.
// Closures hide the address and the caller's transport from fmt, because they may hold a
// credential.
type Client struct {
	service      Service
	base         func() string   // the base address
	baseSegments func() []string // of its path; one may be an id of the caller
	network      wire.Network
	settings     *Settings
	throttle     limit.Throttle
	budget       budget
}

// New makes a client without network access. It checks all options, so no call fails because
// of them.
func New(service Service, baseURL string, opts []Option) (*Client, error) {
	settings, err := service.Defaults.With(opts)
	if err != nil {
		return nil, err
	}
	settings.OwnLimiter, settings.OwnCredential = false, false // all calls share them
	if settings.random == nil {
		settings.random = await.Evenly
	}
	base, err := parseBase(baseURL, service.Route, settings.InsecureHTTP)
	if err != nil {
		return nil, err
	}
	var segments []string
	if u, err := url.Parse(base); err == nil {
		segments = strings.Split(u.Path, "/")
	}
	// The budget starts full, because a new client may meet an outage, too.
	c := &Client{service: service, settings: settings, base: mask.Hide(base), baseSegments: func() []string { return segments }, budget: budget{tokens: budgetFull}}
	switch hc := settings.HTTPClient; {
	case hc != nil:
		c.network = wire.OfCaller(cmp.Or(hc.Transport, http.DefaultTransport))
		// The http.Client itself is not used: it would follow redirects and keep cookies. Its
		// timeout is kept, because callers rely on it.
		if hc.Timeout > 0 {
			settings.AttemptTimeout = min(cmp.Or(settings.AttemptTimeout, forever), hc.Timeout)
		}
	default:
		own := settings.network
		own.Reuse = settings.ConnectionReuse
		if c.network, err = wire.New(own); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Address is the URL of a path. Do not print it: it may hold an id of the caller.
func (c *Client) Address(path string) string { return c.base() + path }

// Throttled returns a Failure if a cooldown outlasts the deadline, and otherwise nil. It is
// for calls that wait for the response to another call.
func (c *Client) Throttled(ctx context.Context, operation string) *fault.Failure {
	left := c.throttle.Remaining("")
	if deadline, ok := ctx.Deadline(); !ok || left == 0 || time.Until(deadline) > left {
		return nil
	}
	return &fault.Failure{Operation: operation, RetryAfter: left, Err: fault.WithFacts(limit.ErrPaused, fault.Facts{Verdict: fault.Paused})}
}

// Probes returns when a probe of an account that is due at a time leaves: not before the end of a pause that the
// service asked for. It is zero if no probe is due.
func (c *Client) Probes(account string, due time.Time) time.Time {
	if end := c.throttle.End(account); !due.IsZero() && end.After(due) {
		return end
	}
	return due
}
