package updater

import (
	"fmt"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// A Client downloads the results of account updater jobs of one merchant. It is
// made by [NewClient], immutable, and safe for concurrent use; calls of the zero
// value return an error.
type Client struct {
	core     *transport.Client
	merchant func() string // a closure keeps the id out of the reach of fmt
}

// NewClient returns a client of the service at baseURL, the {updater_url} of the
// interface, with or without a path and a trailing slash. merchantID is sent as
// x-merchant-id, and token provides the access token (interface,
// "Authentication"). How that token is obtained is not documented: [TokenFunc]
// makes a source of whatever obtains it.
//
// It does not touch the network. It fails with [ErrInvalidArgument] when the
// base URL is not https (loopback addresses may be http) or holds user
// information, a query or a fragment, when the credential or the merchant id is
// empty or unprintable, or when an option is unusable. The error quotes none of
// them.
func NewClient(baseURL, merchantID string, token TokenSource, opts ...Option) (*Client, error) {
	core, err := transport.New(transport.Service{
		Name: "updater",
		Defaults: transport.Settings{
			MaxRetries:     3,
			WaitBase:       200 * time.Millisecond,
			WaitMax:        5 * time.Second,
			AttemptTimeout: 30 * time.Second,
		},
		// A connection costs little beside a download, and what follows one on a kept
		// connection may be more of its content.
		Network: transport.Network{DisableKeepAlives: true, DisableCompression: true},
	}, baseURL, append([]Option{WithTokenSource(token)}, opts...))
	if err != nil {
		return nil, fmt.Errorf("updater: new client: %w", err)
	}
	if err := transport.CheckMerchantID(merchantID); err != nil {
		return nil, fmt.Errorf("updater: new client: %w", err)
	}
	return (&Client{core: core}).ForMerchant(merchantID)
}

// ForMerchant returns a client for another merchant. It costs next to nothing:
// the two share transport, limiter, retry budget and token source. The id is
// 1 to 128 visible ASCII characters without a comma.
func (c *Client) ForMerchant(id string) (*Client, error) {
	if c == nil || c.core == nil {
		return nil, fmt.Errorf("updater: for merchant: %w", transport.Invalid("the client was not made by NewClient"))
	}
	if err := transport.CheckMerchantID(id); err != nil {
		return nil, fmt.Errorf("updater: for merchant: %w", err)
	}
	return &Client{core: c.core, merchant: func() string { return id }}, nil
}
