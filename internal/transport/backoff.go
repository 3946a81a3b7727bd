package transport

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxRetryAfter is the longest wait that the service can impose. A longer one
	// ends the call and is reported instead.
	maxRetryAfter = time.Minute
	// throttleBase replaces the base wait after a 429 that names no wait.
	throttleBase = time.Second
	// retryAfterCeiling keeps absurd values representable.
	retryAfterCeiling = 365 * 24 * time.Hour
)

// parseRetryAfter reads whole seconds or one of the three HTTP date forms. Zero
// is "none": an absent, unreadable or past value.
func parseRetryAfter(h http.Header) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(retryAfterCeiling/time.Second) {
			return retryAfterCeiling
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(0, time.Until(at)), retryAfterCeiling)
}

// backoff is full jitter below an exponentially growing bound. n counts the
// retries so far.
func (s *Settings) backoff(n int, limited bool) time.Duration {
	base, limit := s.WaitBase, s.WaitMax
	if limited && base > 0 {
		base = max(base, min(throttleBase, limit))
	}
	bound := limit
	doublings := min(n, 20)
	if grown := base << doublings; grown < limit && grown>>doublings == base {
		bound = grown
	}
	if base == 0 || bound <= 0 {
		return 0
	}
	return rand.N(bound)
}

// Sleep waits, and returns before with an error if the context ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// obey lengthens a wait to what the service asked for, and somewhat beyond, so
// that calls which were refused together do not come back together.
func obey(wait, retryAfter time.Duration) time.Duration {
	if retryAfter == 0 {
		return wait
	}
	return max(wait, retryAfter+rand.N(min(time.Second, retryAfter/10)+1))
}
