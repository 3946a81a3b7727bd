package updater_test

import (
	"context"
	"errors"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/transport"
	"github.com/carddata/carddata-go/updater"
)

func TestOptions(t *testing.T) {
	testkit.Surface{
		Method: "GET",
		Path:   path,
		Make: func(ctx context.Context, baseURL string, opts []updater.Option, call ...updater.Option) error {
			client, err := updater.NewClient(baseURL, "merchant-1", updater.StaticToken("token-1"), opts...)
			if err != nil {
				return err
			}
			d, err := client.Download(ctx, "job-1", call...)
			if err != nil {
				return err
			}
			return d.Close()
		},
		StaticToken:          func(token string) transport.TokenSource { return updater.StaticToken(token) },
		TokenFunc:            func(f func(context.Context) (string, error)) transport.TokenSource { return updater.TokenFunc(f) },
		WithTokenSource:      func(source transport.TokenSource) updater.Option { return updater.WithTokenSource(source) },
		WithLimiter:          func(l transport.Limiter) updater.Option { return updater.WithLimiter(l) },
		WithHTTPClient:       updater.WithHTTPClient,
		WithHeader:           updater.WithHeader,
		WithUserAgent:        updater.WithUserAgent,
		WithLogger:           updater.WithLogger,
		WithMaxRetries:       updater.WithMaxRetries,
		WithRetryWait:        updater.WithRetryWait,
		WithAttemptTimeout:   updater.WithAttemptTimeout,
		WithRateLimit:        updater.WithRateLimit,
		WithMaxResponseBytes: updater.WithMaxResponseBytes,
		WithInsecureHTTP:     updater.WithInsecureHTTP,
	}.Check(t)
	client := newClient(t, newMock())
	for i, o := range []updater.Option{updater.WithWait(-1, 0), updater.WithWait(0, -1), updater.WithResumeTimeout(-1)} {
		if _, err := client.Download(t.Context(), "job-1", o); !errors.Is(err, updater.ErrInvalidArgument) {
			t.Errorf("negative option %d: %v", i, err)
		}
	}
}
