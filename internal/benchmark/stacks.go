package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/go-resty/resty/v2"
	"github.com/imroc/req/v3"
	"github.com/stripe/stripe-go/v84"
	"golang.org/x/time/rate"
	resty3 "resty.dev/v3"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/benchmark/byhand"
	"github.com/carddata/carddata-go/internal/benchmark/process"
)

const token = "key-1"

// A lookup looks cards up, and tells how many items were found.
type lookup func(ctx context.Context, cards []string) (int, error)

// A stack is a way to look cards up over a transport; nil is the stack's own.
type stack struct {
	name string
	open func(base string, transport http.RoundTripper) (lookup, error)
}

// library is the contestant that the others are compared with.
const library = process.Library

// stacks decode into the same structs, but for the library. The first is the
// library, the second what a team would write by hand.
var stacks = []stack{
	{library, openLibrary},
	{"net/http + encoding/json", func(base string, transport http.RoundTripper) (lookup, error) {
		return items(byhand.New(base, token, &http.Client{Transport: transport}).Lookup), nil
	}},
	{"go-retryablehttp", func(base string, transport http.RoundTripper) (lookup, error) {
		return items(byhand.NewRetryable(base, token, &http.Client{Transport: transport}).Lookup), nil
	}},
	{"go-resty/resty/v2", openResty2},
	{"resty.dev/v3", openResty3},
	{"imroc/req/v3", openReq},
	{"stripe-go/v84", openStripe},
}

// openLibrary switches on what the library has: retries, evidence and attempt
// timeout are always on, and a limiter that never holds anything back.
func openLibrary(base string, transport http.RoundTripper) (lookup, error) {
	opts := []bins.Option{bins.WithRateLimit(rate.Limit(1e9), 1e9)}
	if transport != nil {
		opts = append(opts, bins.WithHTTPClient(&http.Client{Transport: transport}))
	}
	client, err := bins.NewClient(base, bins.StaticToken(token), opts...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, cards []string) (int, error) {
		resp, err := client.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(cards...)})
		if err != nil {
			return 0, err
		}
		return len(resp.Cards), nil
	}, nil
}

func items(f func(context.Context, []string) (*byhand.LookupResponse, error)) lookup {
	return func(ctx context.Context, cards []string) (int, error) {
		resp, err := f(ctx, cards)
		if err != nil {
			return 0, err
		}
		return len(resp.Cards), nil
	}
}

func failedStatus(status int) error { return fmt.Errorf("status %d", status) }

func openResty2(base string, transport http.RoundTripper) (lookup, error) {
	client := resty.NewWithClient(&http.Client{Transport: transport}).SetBaseURL(base).SetAuthToken(token).SetDisableWarn(true)
	return items(func(ctx context.Context, cards []string) (*byhand.LookupResponse, error) {
		out := new(byhand.LookupResponse)
		resp, err := client.R().SetContext(ctx).SetBody(byhand.NewLookupRequest(cards)).SetResult(out).Post(byhand.LookupPath)
		if err == nil && resp.IsError() {
			err = failedStatus(resp.StatusCode())
		}
		return out, err
	}), nil
}

func openResty3(base string, transport http.RoundTripper) (lookup, error) {
	client := resty3.NewWithClient(&http.Client{Transport: transport}).SetBaseURL(base).SetAuthToken(token).SetLoggerWarnLevel(true)
	return items(func(ctx context.Context, cards []string) (*byhand.LookupResponse, error) {
		out := new(byhand.LookupResponse)
		resp, err := client.R().SetContext(ctx).SetBody(byhand.NewLookupRequest(cards)).SetResult(out).Post(byhand.LookupPath)
		if err == nil && !resp.IsStatusSuccess() {
			err = failedStatus(resp.StatusCode())
		}
		return out, err
	}), nil
}

func openReq(base string, transport http.RoundTripper) (lookup, error) {
	client := req.C().SetBaseURL(base).SetCommonBearerAuthToken(token)
	if transport != nil {
		client.GetTransport().WrapRoundTripFunc(func(http.RoundTripper) req.HttpRoundTripFunc { return transport.RoundTrip })
	}
	return items(func(ctx context.Context, cards []string) (*byhand.LookupResponse, error) {
		out := new(byhand.LookupResponse)
		resp, err := client.R().SetContext(ctx).SetBodyJsonMarshal(byhand.NewLookupRequest(cards)).SetSuccessResult(out).Post(byhand.LookupPath)
		if err == nil && !resp.IsSuccessState() {
			err = failedStatus(resp.StatusCode)
		}
		return out, err
	}), nil
}

type stripeResponse struct {
	stripe.APIResource
	byhand.LookupResponse
}

// openStripe uses what is behind the calls of stripe-go. Its paths must begin with
// a version; the simulated service does not mind.
func openStripe(base string, transport http.RoundTripper) (lookup, error) {
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL:             new(base),
		HTTPClient:      &http.Client{Transport: transport},
		LeveledLogger:   &stripe.LeveledLogger{Level: stripe.LevelNull},
		EnableTelemetry: new(false),
	}).(*stripe.BackendImplementation)
	return items(func(ctx context.Context, cards []string) (*byhand.LookupResponse, error) {
		body, err := json.Marshal(byhand.NewLookupRequest(cards))
		if err != nil {
			return nil, err
		}
		r, err := backend.NewRequest(http.MethodPost, "/v1"+byhand.LookupPath, token, "application/json", &stripe.Params{Context: ctx})
		if err != nil {
			return nil, err
		}
		out := new(stripeResponse)
		err = backend.Do(r, bytes.NewBuffer(body), out)
		return &out.LookupResponse, err
	}), nil
}
