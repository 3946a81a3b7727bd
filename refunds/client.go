package refunds

import (
	"fmt"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// A Client submits refund records. It is made by [NewClient], immutable, and
// safe for concurrent use; calls of the zero value return an error.
type Client struct {
	core *transport.Client
}

// NewClient returns a client of the service at baseURL, the {refund_url} of the
// interface, with or without a path and a trailing slash. No credential is
// documented for this endpoint (interface, "Authentication"), so none is sent;
// where the service asks for one, [WithTokenSource] or [WithHeader] adds it.
//
// It does not touch the network. It fails with [ErrInvalidArgument] when the
// base URL is not https (loopback addresses may be http) or holds user
// information, a query or a fragment, or when an option is unusable. The error
// quotes none of them.
func NewClient(baseURL string, opts ...Option) (*Client, error) {
	core, err := transport.New(transport.Service{
		Name: "refunds",
		Defaults: transport.Settings{
			MaxRetries:       2,
			WaitBase:         200 * time.Millisecond,
			WaitMax:          5 * time.Second,
			AttemptTimeout:   35 * time.Second,
			MaxResponseBytes: 64 << 10,
		},
		// Servers close idle connections after five seconds and more. A refund that
		// meets a closing one has an unknown outcome, so ours are closed well before.
		Network:     transport.Network{IdleConnTimeout: 2 * time.Second, DisableCompression: true},
		CallTimeout: 90 * time.Second,
	}, baseURL, opts)
	if err != nil {
		return nil, fmt.Errorf("refunds: new client: %w", err)
	}
	return &Client{core}, nil
}
