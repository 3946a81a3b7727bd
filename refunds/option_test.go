package refunds_test

import (
	"context"
	"crypto/tls"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/transport"
	"github.com/carddata/carddata-go/refunds"
)

func TestOptions(t *testing.T) {
	if _, err := refunds.NewClient(testkit.Base, refunds.WithTLSConfig(&tls.Config{}), refunds.WithProxy(nil)); err != nil {
		t.Error(err)
	}
	testkit.Surface{
		Method: "POST",
		Path:   path,
		Make: func(ctx context.Context, baseURL string, opts []refunds.Option, call ...refunds.Option) error {
			client, err := refunds.NewClient(baseURL, opts...)
			if err != nil {
				return err
			}
			_, err = client.Submit(ctx, "acct-1", record(), call...)
			return err
		},
		StaticToken:          func(token string) transport.TokenSource { return refunds.StaticToken(token) },
		TokenFunc:            func(f func(context.Context) (string, error)) transport.TokenSource { return refunds.TokenFunc(f) },
		WithTokenSource:      func(source transport.TokenSource) refunds.Option { return refunds.WithTokenSource(source) },
		WithLimiter:          func(l transport.Limiter) refunds.Option { return refunds.WithLimiter(l) },
		WithHTTPClient:       refunds.WithHTTPClient,
		WithHeader:           refunds.WithHeader,
		WithUserAgent:        refunds.WithUserAgent,
		WithLogger:           refunds.WithLogger,
		WithMaxRetries:       refunds.WithMaxRetries,
		WithRetryWait:        refunds.WithRetryWait,
		WithAttemptTimeout:   refunds.WithAttemptTimeout,
		WithRateLimit:        refunds.WithRateLimit,
		WithMaxResponseBytes: refunds.WithMaxResponseBytes,
		WithInsecureHTTP:     refunds.WithInsecureHTTP,
	}.Check(t)
}
