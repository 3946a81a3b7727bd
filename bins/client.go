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

// NewClient returns a client of the service at baseURL, the {bin_url} of the package
// comment. It may have a path and a trailing slash. token provides the API key: see
// [StaticToken].
//
// NewClient does not touch the network. It fails with [ErrInvalidArgument] if the base URL is
// not https (loopback addresses may be http), or has user information, a query or a fragment,
// if the API key is empty or unprintable, or if an option is unusable. The error quotes none of
// them.
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
	// Level is how many requests may be in flight, at most, in the time of one response; below 1, one leaves
	// in so much of it. Zero: no limit is known.
	Level float64
	// InFlight is how many requests are in flight.
	InFlight int
	// Waiting is how many requests wait for a place in flight.
	Waiting int
	// PausedUntil is when the next probe is due, because the service is down. Zero: it is not.
	PausedUntil time.Time
	// Reason is [Error.Condition] of the last failure of the service; "": there was none.
	Reason string
}

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
