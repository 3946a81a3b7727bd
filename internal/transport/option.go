package transport

import (
	"log/slog"
	"math"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// WithHTTPClient is documented by the packages that expose it, as are all
// options below.
func WithHTTPClient(c *http.Client) Option {
	return clientOnly("WithHTTPClient", func(s *Settings) {
		if c == nil {
			s.refuse("the http.Client is nil")
			return
		}
		s.HTTPClient = c
	})
}

func WithTokenSource(source TokenSource) Option {
	return option(func(s *Settings) {
		if err := checkSource(source); err != nil {
			s.fail(err)
			return
		}
		s.Token = source
	})
}

// reserved headers follow from the call itself; changing one breaks it.
var reserved = map[string]bool{
	"Accept-Encoding": true, "Connection": true, "Content-Length": true, "Content-Type": true, "Host": true,
	"Range": true, "If-Range": true, "Trailer": true, "Transfer-Encoding": true, "User-Agent": true, "X-Merchant-Id": true,
}

func WithHeader(name, value string) Option {
	return option(func(s *Settings) {
		switch canonical := textproto.CanonicalMIMEHeaderKey(name); {
		case !isHeaderName(name):
			s.refuse("a header name is not usable")
		case reserved[canonical]:
			s.refuse("header %s is set by the library", canonical)
		case !isHeaderValue(value):
			s.refuse("the value of header %s holds characters that a header cannot carry", canonical)
		default:
			s.headers = append(s.headers, header{canonical, func() string { return value }})
		}
	})
}

func WithUserAgent(product string) Option {
	return option(func(s *Settings) {
		if !isHeaderValue(product) {
			s.refuse("the user agent holds characters that a header cannot carry")
			return
		}
		s.UserAgent = product
	})
}

func WithLogger(l *slog.Logger) Option {
	return option(func(s *Settings) { s.Logger = l })
}

func WithMaxRetries(n int) Option {
	return option(func(s *Settings) {
		if n < 0 {
			s.refuse("the number of retries is negative")
			return
		}
		s.MaxRetries = n
	})
}

func WithRetryWait(base, limit time.Duration) Option {
	return option(func(s *Settings) {
		if base < 0 || limit < base {
			s.refuse("the retry wait must be 0 <= base <= limit")
			return
		}
		s.WaitBase, s.WaitMax = base, limit
	})
}

func WithAttemptTimeout(d time.Duration) Option {
	return option(func(s *Settings) {
		if d < 0 {
			s.refuse("the attempt timeout is negative")
			return
		}
		s.AttemptTimeout = d
	})
}

func WithRateLimit(limit rate.Limit, burst int) Option {
	return clientOnly("WithRateLimit", func(s *Settings) {
		// A NaN limit would let everything through, and a burst below 1 nothing.
		if math.IsNaN(float64(limit)) || limit <= 0 || burst < 1 {
			s.refuse("the rate limit must be above 0 and its burst at least 1")
			return
		}
		s.Limiter = rate.NewLimiter(limit, burst)
	})
}

func WithLimiter(l Limiter) Option {
	return option(func(s *Settings) { s.Limiter = l })
}

func WithMaxResponseBytes(n int64) Option {
	return option(func(s *Settings) {
		if n < 0 {
			s.refuse("the response cap is negative")
			return
		}
		s.MaxResponseBytes = n
	})
}

func WithInsecureHTTP() Option {
	return clientOnly("WithInsecureHTTP", func(s *Settings) { s.InsecureHTTP = true })
}

// WithRepeatUnknown is exposed as refunds.WithResubmit.
func WithRepeatUnknown() Option {
	return option(func(s *Settings) { s.RepeatUnknown = true })
}

func isHeaderName(name string) bool {
	const separators = "\"(),/:;<=>?@[\\]{}"
	return name != "" && strings.IndexFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(separators, r)
	}) < 0
}

// isHeaderValue refuses also what net/http would trim, and so change.
func isHeaderValue(value string) bool {
	return strings.Trim(value, " \t") == value && strings.IndexFunc(value, func(r rune) bool {
		return r < ' ' && r != '\t' || r == 0x7f || r >= 0x80
	}) < 0
}
