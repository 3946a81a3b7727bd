package updater

import (
	"fmt"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/transport"
)

// A Client downloads results on behalf of one merchant. [NewClient] and [Client.ForMerchant] make it. It
// is immutable and safe for concurrent use.
type Client struct {
	core     *transport.Client
	merchant func() string // "": none; a closure keeps the id out of the reach of fmt
}

// NewClient returns a client of the service at baseURL, its {updater_url}, which may have a path.
//
// merchantID is sent as x-merchant-id. Its format is not documented: 1 to 128 visible ASCII characters
// without a comma are accepted. If it is empty, use only [Client.ForMerchant]. How to get an access token
// is not documented: give [CachedToken] your own function.
//
// NewClient does not use the network. It fails with [ErrInvalidArgument] if an argument is unusable, or if
// the base URL is not https (loopback addresses may be http) or has user information, a query or a
// fragment.
func NewClient(baseURL, merchantID string, token TokenSource, opts ...Option) (*Client, error) {
	core, err := transport.New(transport.Service{
		Name:  "updater",
		Route: route,
		// No ConnectionReuse: a new connection costs little beside a download, and bytes that
		// arrive late on a kept one could be taken for the next response.
		Defaults: transport.Settings{
			MaxRetries:     3,
			WaitBase:       200 * time.Millisecond,
			WaitMax:        5 * time.Second,
			AttemptTimeout: 30 * time.Second,
		},
	}, baseURL, changes(append([]Option{WithTokenSource(token)}, opts...)))
	if err == nil && merchantID != "" {
		err = checkMerchantID(merchantID)
	}
	if err != nil {
		return nil, fmt.Errorf("updater: new client: %w", err)
	}
	return &Client{core, func() string { return merchantID }}, nil
}

// ForMerchant returns a client for another merchant. It is cheap: both share transport, limiter, retry
// budget and token source. If each merchant has its own credential, give its calls [WithTokenSource]. If
// each has its own quota, make its client with [NewClient].
func (c *Client) ForMerchant(id string) (*Client, error) {
	if c == nil || c.core == nil {
		return nil, fmt.Errorf("updater: for merchant: %w", fault.Invalid("the client was not made by NewClient"))
	}
	if err := checkMerchantID(id); err != nil {
		return nil, fmt.Errorf("updater: for merchant: %w", err)
	}
	return &Client{c.core, func() string { return id }}, nil
}

const maxMerchantID = 128

// checkMerchantID refuses ids that a header of one value cannot carry. Its error does not
// quote the id.
func checkMerchantID(id string) error {
	switch {
	case id == "":
		return fault.Invalid("the merchant id is empty")
	case len(id) > maxMerchantID || !auth.IsVisible(id) || strings.Contains(id, ","):
		return fault.Invalid("the merchant id is not one run of visible ASCII characters without a comma (%d at most)", maxMerchantID)
	}
	return nil
}
