package bins

import (
	"fmt"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
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

// settings are those of calls with opts.
func (c *Client) settings(opts []CallOption) (*transport.Settings, error) {
	if c == nil || c.core == nil {
		return nil, fault.Invalid("the client was not made by NewClient")
	}
	return c.core.Settings(changes(opts))
}
