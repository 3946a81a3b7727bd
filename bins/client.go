package bins

import (
	"fmt"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
	"github.com/carddata/carddata-go/internal/transport"
)

// A Client looks up cards. [NewClient] makes it. It is immutable and safe for concurrent use.
type Client struct {
	core *transport.Client
}

// NewClient returns a client of the service at baseURL, the {bin_url} of the interface. It may have a
// path. token provides the API key: see [StaticToken].
//
// NewClient does not touch the network. It fails with [ErrInvalidArgument] if the base URL is not https
// (see [WithInsecureHTTP]), or has user information, a query or a fragment, or if the API key or an option
// is unusable.
func NewClient(baseURL string, token TokenSource, opts ...Option) (*Client, error) {
	core, err := transport.New(transport.Service{
		Name:  "bins",
		Route: "/bins/multiple",
		Defaults: transport.Settings{
			MaxRetries:       3,
			WaitBase:         200 * time.Millisecond,
			WaitMax:          5 * time.Second,
			AttemptTimeout:   10 * time.Second,
			MaxResponseBytes: 8 << 20,
			ConnectionReuse:  30 * time.Second,
		},
		CallTimeout: 30 * time.Second,
	}, baseURL, changes(append([]Option{WithTokenSource(token)}, opts...)))
	if err != nil {
		return nil, fmt.Errorf("bins: new client: %w", err)
	}
	return &Client{core}, nil
}

// Stats say what a bulk lookup or a loader knows of the load and the health of the service.
type Stats struct {
	Level       float64   // requests that may leave in the time of one response; zero: no limit is known
	InFlight    int       // requests in flight
	Waiting     int       // requests that wait for their turn
	PausedUntil time.Time // when the next probe is due, because the service is down; zero: it is not
	Reason      string    // [Error.Condition] of the last failure of the service; "": there was none
}

// Paused reports that the service is down.
func (s Stats) Paused() bool { return !s.PausedUntil.IsZero() }

func statsOf(s flow.State) Stats {
	return Stats{Level: s.Level, InFlight: s.InFlight, Waiting: s.Waiting, PausedUntil: s.PausedUntil, Reason: s.Why}
}

// settings are those of calls with opts.
func (c *Client) settings(opts []CallOption) (*transport.Settings, error) {
	if c == nil || c.core == nil {
		return nil, fault.Invalid("the client was not made by NewClient")
	}
	return c.core.Settings(changes(opts))
}
