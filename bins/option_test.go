package bins_test

import (
	"context"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/transport"
)

func TestOptions(t *testing.T) {
	testkit.Surface{
		Method: "POST",
		Path:   path,
		Accept: `{"cards":null}`,
		Make: func(ctx context.Context, baseURL string, opts []bins.Option, call ...bins.Option) error {
			client, err := bins.NewClient(baseURL, bins.StaticToken("key-1"), opts...)
			if err != nil {
				return err
			}
			_, err = client.Lookup(ctx, request(), call...)
			return err
		},
		StaticToken:          func(token string) transport.TokenSource { return bins.StaticToken(token) },
		TokenFunc:            func(f func(context.Context) (string, error)) transport.TokenSource { return bins.TokenFunc(f) },
		WithTokenSource:      func(source transport.TokenSource) bins.Option { return bins.WithTokenSource(source) },
		WithLimiter:          func(l transport.Limiter) bins.Option { return bins.WithLimiter(l) },
		WithHTTPClient:       bins.WithHTTPClient,
		WithHeader:           bins.WithHeader,
		WithUserAgent:        bins.WithUserAgent,
		WithLogger:           bins.WithLogger,
		WithMaxRetries:       bins.WithMaxRetries,
		WithRetryWait:        bins.WithRetryWait,
		WithAttemptTimeout:   bins.WithAttemptTimeout,
		WithRateLimit:        bins.WithRateLimit,
		WithMaxResponseBytes: bins.WithMaxResponseBytes,
		WithInsecureHTTP:     bins.WithInsecureHTTP,
	}.Check(t)
}
