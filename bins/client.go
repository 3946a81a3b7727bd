package bins

import (
	"fmt"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// A Client looks cards up. It is made by [NewClient], immutable, and safe for
// concurrent use; calls of the zero value return an error.
type Client struct {
	core *transport.Client
}

// NewClient returns a client of the service at baseURL, the {bin_url} of the
// interface, with or without a path and a trailing slash. token provides the API
// key (interface, "Authentication"): use [StaticToken] for one that does not
// change.
//
// It does not touch the network. It fails with [ErrInvalidArgument] when the
// base URL is not https (loopback addresses may be http) or holds user
// information, a query or a fragment, when the credential is empty or
// unprintable, or when an option is unusable. The error quotes none of them.
func NewClient(baseURL string, token TokenSource, opts ...Option) (*Client, error) {
	core, err := transport.New(transport.Service{
		Name: "bins",
		Defaults: transport.Settings{
			MaxRetries:       3,
			WaitBase:         200 * time.Millisecond,
			WaitMax:          5 * time.Second,
			AttemptTimeout:   10 * time.Second,
			MaxResponseBytes: 8 << 20,
		},
		Network:     transport.Network{IdleConnTimeout: 30 * time.Second},
		CallTimeout: 30 * time.Second,
	}, baseURL, append([]Option{WithTokenSource(token)}, opts...))
	if err != nil {
		return nil, fmt.Errorf("bins: new client: %w", err)
	}
	return &Client{core}, nil
}
