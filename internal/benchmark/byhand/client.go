// Package byhand is a client as a competent team writes it for itself: net/http,
// encoding/json and structs of its own.
package byhand

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// A Client sends what its Send sends.
type Client struct {
	Send func(ctx context.Context, path string, body []byte) (*http.Response, error)
}

// New returns a client over net/http alone.
func New(base, token string, client *http.Client) *Client {
	return &Client{func(ctx context.Context, path string, body []byte) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		setHeader(req.Header, token)
		return client.Do(req)
	}}
}

// NewRetryable returns a client over go-retryablehttp, with its defaults but for
// the client and for waits, which are the library's.
func NewRetryable(base, token string, client *http.Client) *Client {
	retrying := retryablehttp.NewClient()
	retrying.HTTPClient, retrying.Logger = client, nil
	retrying.RetryWaitMin, retrying.RetryWaitMax = 200*time.Millisecond, 5*time.Second
	return &Client{func(ctx context.Context, path string, body []byte) (*http.Response, error) {
		req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, base+path, body)
		if err != nil {
			return nil, err
		}
		setHeader(req.Header, token)
		return retrying.Do(req)
	}}
}

func setHeader(h http.Header, token string) {
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json")
}

// Post sends in, and reads the response into out.
func (c *Client) Post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	resp, err := c.Send(ctx, path, body)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	defer resp.Body.Close()
	response, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	if err := json.Unmarshal(response, out); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

// LookupPath is where cards are looked up.
const LookupPath = "/bins/multiple"

// Lookup looks cards up.
func (c *Client) Lookup(ctx context.Context, cards []string) (*LookupResponse, error) {
	resp := new(LookupResponse)
	if err := c.Post(ctx, LookupPath, NewLookupRequest(cards), resp); err != nil {
		return nil, err
	}
	return resp, nil
}
