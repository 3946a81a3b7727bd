// Package options makes options that the three packages have in common, for tests of all three.
package options

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
	"golang.org/x/time/rate"
)

// An Option holds the same option of each package.
type Option []any

// For picks those of one type: Option or CallOption of one package. It panics at an option that
// has no such type, because a test would pass without it.
func For[O any](opts []Option) (list []O) {
	for i, o := range opts {
		for _, own := range o {
			if own, ok := own.(O); ok {
				list = append(list, own)
			}
		}
		if len(list) != i+1 {
			panic(fmt.Sprintf("option %d is no %T", i+1, list))
		}
	}
	return list
}

func WithAttemptTimeout(d time.Duration) Option {
	return Option{bins.WithAttemptTimeout(d), refunds.WithAttemptTimeout(d), updater.WithAttemptTimeout(d)}
}

func WithHTTPClient(c *http.Client) Option {
	return Option{bins.WithHTTPClient(c), refunds.WithHTTPClient(c), updater.WithHTTPClient(c)}
}

func WithHeader(name, value string) Option {
	return Option{bins.WithHeader(name, value), refunds.WithHeader(name, value), updater.WithHeader(name, value)}
}

func WithInsecureHTTP() Option {
	return Option{bins.WithInsecureHTTP(), refunds.WithInsecureHTTP(), updater.WithInsecureHTTP()}
}

func WithLimiter(l bins.Limiter) Option {
	return Option{bins.WithLimiter(l), refunds.WithLimiter(l), updater.WithLimiter(l)}
}

func WithLogger(l *slog.Logger) Option {
	return Option{bins.WithLogger(l), refunds.WithLogger(l), updater.WithLogger(l)}
}

func WithMaxRetries(n int) Option {
	return Option{bins.WithMaxRetries(n), refunds.WithMaxRetries(n), updater.WithMaxRetries(n)}
}

func WithProxy(proxy func(*http.Request) (*url.URL, error)) Option {
	return Option{bins.WithProxy(proxy), refunds.WithProxy(proxy), updater.WithProxy(proxy)}
}

func WithRateLimit(limit rate.Limit, burst int) Option {
	return Option{bins.WithRateLimit(limit, burst), refunds.WithRateLimit(limit, burst), updater.WithRateLimit(limit, burst)}
}

func WithRetryWait(base, limit time.Duration) Option {
	return Option{bins.WithRetryWait(base, limit), refunds.WithRetryWait(base, limit), updater.WithRetryWait(base, limit)}
}

func WithTLSConfig(c *tls.Config) Option {
	return Option{bins.WithTLSConfig(c), refunds.WithTLSConfig(c), updater.WithTLSConfig(c)}
}

func WithTokenSource(source bins.TokenSource) Option {
	return Option{bins.WithTokenSource(source), refunds.WithTokenSource(source), updater.WithTokenSource(source)}
}

func WithUserAgent(product string) Option {
	return Option{bins.WithUserAgent(product), refunds.WithUserAgent(product), updater.WithUserAgent(product)}
}
