package benchmark

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/hashicorp/go-retryablehttp"
)

const lookupPath = "/bins/multiple"

// A client is what a competent team writes for itself: net/http, encoding/json and its own
// structs.
type client struct {
	send      func(ctx context.Context, path string, body []byte) (*http.Response, error)
	unmarshal func(data []byte, to any) error
}

func newClient(base, token string, sender *http.Client) *client {
	send := func(ctx context.Context, path string, body []byte) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		setHeader(req.Header, token)
		return sender.Do(req)
	}
	return &client{send, json.Unmarshal}
}

// newJSONv2Client decodes with what encoding/json/v2 is made from.
func newJSONv2Client(base, token string, sender *http.Client) *client {
	c := newClient(base, token, sender)
	c.unmarshal = func(data []byte, to any) error { return jsonv2.Unmarshal(data, to) }
	return c
}

func newRetryableClient(base, token string, sender *http.Client) *client {
	retrying := retryablehttp.NewClient()
	retrying.HTTPClient, retrying.Logger = sender, nil
	retrying.RetryWaitMin, retrying.RetryWaitMax = 200*time.Millisecond, 5*time.Second // as the library
	send := func(ctx context.Context, path string, body []byte) (*http.Response, error) {
		req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, base+path, body)
		if err != nil {
			return nil, err
		}
		setHeader(req.Header, token)
		return retrying.Do(req)
	}
	return &client{send, json.Unmarshal}
}

func setHeader(h http.Header, token string) {
	h.Set("Authorization", "Bearer "+token)
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json")
}

func (c *client) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	resp, err := c.send(ctx, path, body)
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
	if err := c.unmarshal(response, out); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

func (c *client) lookup(ctx context.Context, cards []string) (*lookupResponse, error) {
	resp := new(lookupResponse)
	return resp, c.post(ctx, lookupPath, newLookupRequest(cards), resp)
}
