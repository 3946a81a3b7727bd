package refunds

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
	"github.com/carddata/carddata-go/internal/transport"
)

// A Client submits refund records. [NewClient] makes it. It is safe for concurrent use.
type Client struct {
	core   *transport.Client
	window *flow.Window // of all calls
	pauses *transport.PauseLog
}

// NewClient returns a client of the service at baseURL, its {refund_url}, which may have a path. No
// credential is documented: if the service asks for one, add [WithTokenSource] or [WithHeader].
//
// It does not touch the network. It fails with [ErrInvalidArgument] if an option is unusable, or if the
// base URL is not https (loopback addresses may be http) or has user information, a query or a fragment.
func NewClient(baseURL string, opts ...Option) (*Client, error) {
	core, err := transport.New(transport.Service{
		Name:  "refunds",
		Route: route,
		Defaults: transport.Settings{
			MaxRetries:       2,
			WaitBase:         200 * time.Millisecond,
			WaitMax:          5 * time.Second,
			AttemptTimeout:   35 * time.Second,
			MaxResponseBytes: 64 << 10,
		},
		CallTimeout: 90 * time.Second,
	}, baseURL, changes(opts))
	if err != nil {
		return nil, fmt.Errorf("refunds: new client: %w", err)
	}
	call := transport.Call{Operation: operation, Method: http.MethodPost, Route: route}
	return &Client{core, core.NewWindow(context.Background()), &transport.PauseLog{Client: core, Call: call}}, nil
}

// Stats say what a client knows of the load and the health of the service.
type Stats struct {
	Level       float64   // requests that may leave in the time of one response; 0: no limit is known
	InFlight    int       // requests in flight
	Waiting     int       // calls and records that wait for a place in flight
	PausedUntil time.Time // when the next probe is due, because the service is down; zero: it is not
	Reason      string    // Error.Condition of the last failure of the service; "": there was none
}

// Paused reports that the service is down.
func (s Stats) Paused() bool { return !s.PausedUntil.IsZero() }

// Stats returns what the client knows now. A worker asks before it takes a message: see the Example.
func (c *Client) Stats() Stats {
	if c == nil || c.core == nil {
		return Stats{}
	}
	s := c.window.State()
	return Stats{Level: s.Level, InFlight: s.InFlight, Waiting: s.Waiting, PausedUntil: s.PausedUntil, Reason: s.Why}
}

// logState logs a pause and its end. The caller's logger may panic: a result must be safe by then.
func (c *Client) logState() { c.pauses.Log(c.window.State()) }

// settings are those of calls with opts.
func (c *Client) settings(opts []CallOption) (*transport.Settings, error) {
	if c == nil || c.core == nil {
		return nil, fault.Invalid("the client was not made by NewClient")
	}
	return c.core.Settings(changes(opts))
}
