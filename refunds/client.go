package refunds

import (
	"fmt"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/transport"
)

// A Client submits refund records. [NewClient] makes it. It is immutable and safe for
// concurrent use; calls of the zero value fail with [ErrInvalidArgument].
type Client struct {
	core   *transport.Client
	health *health
}

// NewClient returns a client of the service at baseURL, the {refund_url} of the package
// comment. It may have a path and a trailing slash.
//
// No credential is documented for this endpoint. If the service asks for one, add it with
// [WithTokenSource] or [WithHeader].
//
// NewClient does not touch the network. It fails with [ErrInvalidArgument] if an option is
// unusable, or if the base URL is not https (loopback addresses may be http) or has user
// information, a query or a fragment. The error quotes none of them.
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
	return &Client{core, newHealth(core)}, nil
}

// settings are those of calls with opts.
func (c *Client) settings(opts []CallOption) (*transport.Settings, error) {
	if c == nil || c.core == nil {
		return nil, fault.Invalid("the client was not made by NewClient")
	}
	return c.core.Settings(changes(opts))
}
