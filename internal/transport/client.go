package transport

import (
	"cmp"
	"net/http"
	"time"
)

// A Service is what a package fixes for all its clients.
type Service struct {
	Name        string // of the package
	Route       string // of the endpoint: a base URL must not end in it
	Defaults    Settings
	CallTimeout time.Duration // of a call whose context has no deadline; 0: none
}

// A Client is safe for concurrent use; nothing in it changes but the cooldown
// and the retry budget. Its closures keep the address and the caller's transport,
// which may hold a credential, out of the reach of fmt.
type Client struct {
	service  Service
	base     func() string // the base address
	network  network
	settings *Settings
	throttle throttle
	budget   budget
}

// New makes a client without touching the network. What its options say is settled
// here, so that a call cannot fail for it.
func New(service Service, baseURL string, opts []Option) (*Client, error) {
	settings, err := service.Defaults.with(opts, false)
	if err != nil {
		return nil, err
	}
	base, err := parseBase(baseURL, service.Route, settings.InsecureHTTP)
	if err != nil {
		return nil, err
	}
	// The budget is full, as a client that was just started may meet an outage, too.
	c := &Client{service: service, settings: settings, base: hide(base), budget: budget{tokens: budgetFull}}
	switch hc := settings.HTTPClient; {
	case hc != nil:
		c.network = traced(cmp.Or(hc.Transport, http.DefaultTransport))
		// The http.Client itself is not used, because it would follow redirects and keep
		// cookies as it likes. Its timeout is what callers rely on most.
		if hc.Timeout > 0 {
			settings.AttemptTimeout = min(cmp.Or(settings.AttemptTimeout, forever), hc.Timeout)
		}
	case settings.wrap != nil:
		w := &wrapped{transport: newTransport(settings)}
		if w.top = settings.wrap(w); w.top == nil {
			return nil, Invalid("the function given to WithTransport returned nil")
		}
		c.network = w.send
	default:
		c.network = traced(newTransport(settings))
	}
	return c, nil
}

// Address is the URL of a path. It may hold an id of the caller's, and is never
// to be printed.
func (c *Client) Address(path string) string { return c.base() + path }
