package benchmark

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v84"
	"golang.org/x/time/rate"
	"resty.dev/v3"

	"github.com/carddata/carddata-go/bins"
)

// A lookup looks cards up, and returns how many items the response has.
type lookup func(ctx context.Context, cards []string) (int, error)

// lookupClients are what a team can use. All but the library decode with encoding/json into
// the structs of this package.
var lookupClients = []struct {
	name string
	open func(base string, transport http.RoundTripper) (lookup, error) // nil is the client's own transport
}{
	{"carddata", openLibrary},
	{"net-http", func(base string, transport http.RoundTripper) (lookup, error) {
		return counted(newClient(base, token, &http.Client{Transport: transport}).lookup), nil
	}},
	{"net-http+jsonv2", func(base string, transport http.RoundTripper) (lookup, error) {
		return counted(newJSONv2Client(base, token, &http.Client{Transport: transport}).lookup), nil
	}},
	{"go-retryablehttp", func(base string, transport http.RoundTripper) (lookup, error) {
		return counted(newRetryableClient(base, token, &http.Client{Transport: transport}).lookup), nil
	}},
	{"resty", openResty},
	{"stripe-go", openStripe},
}

// openLibrary adds a limiter to the retries and the attempt timeout, which are always on.
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

func counted(f func(context.Context, []string) (*lookupResponse, error)) lookup {
	return func(ctx context.Context, cards []string) (int, error) {
		resp, err := f(ctx, cards)
		if err != nil {
			return 0, err
		}
		return len(resp.Cards), nil
	}
}

func openResty(base string, transport http.RoundTripper) (lookup, error) {
	client := resty.NewWithClient(&http.Client{Transport: transport}).SetBaseURL(base).SetAuthToken(token).SetLoggerWarnLevel(true)
	return counted(func(ctx context.Context, cards []string) (*lookupResponse, error) {
		out := new(lookupResponse)
		resp, err := client.R().SetContext(ctx).SetBody(newLookupRequest(cards)).SetResult(out).Post(lookupPath)
		if err == nil && !resp.IsStatusSuccess() {
			err = fmt.Errorf("status %d", resp.StatusCode())
		}
		return out, err
	}), nil
}

type stripeResponse struct {
	stripe.APIResource
	lookupResponse
}

// openStripe uses the backend of stripe-go, which all its calls share.
func openStripe(base string, transport http.RoundTripper) (lookup, error) {
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL:             new(base),
		HTTPClient:      &http.Client{Transport: transport},
		LeveledLogger:   &stripe.LeveledLogger{Level: stripe.LevelNull},
		EnableTelemetry: new(false),
	}).(*stripe.BackendImplementation)
	return counted(func(ctx context.Context, cards []string) (*lookupResponse, error) {
		body, err := json.Marshal(newLookupRequest(cards))
		if err != nil {
			return nil, err
		}
		// stripe-go wants a version before the path.
		r, err := backend.NewRequest(http.MethodPost, "/v1"+lookupPath, token, "application/json", &stripe.Params{Context: ctx})
		if err != nil {
			return nil, err
		}
		out := new(stripeResponse)
		err = backend.Do(r, bytes.NewBuffer(body), out)
		return &out.lookupResponse, err
	}), nil
}

// Lookup: 50 cards over a RoundTripper in memory. The response has about 115 KB, and most
// of the time is the decoder's.
func BenchmarkLookup(b *testing.B) {
	benchmarkLookup(b, "https://bins.example", service{}, bins.MaxCards)
}

// LookupLoopback: one card over a kept connection, with a response of 60 bytes.
func BenchmarkLookupLoopback(b *testing.B) { benchmarkLookup(b, local.Plain, nil, 1) }

func benchmarkLookup(b *testing.B, base string, transport http.RoundTripper, n int) {
	asked := cards(0, n)
	for _, c := range lookupClients {
		look, err := c.open(base, transport)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("client="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
				found, err := look(ctx, asked)
				if cancel(); err != nil || found != n {
					b.Fatalf("%d items: %v", found, err)
				}
			}
		})
	}
}
