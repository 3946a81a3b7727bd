package fault

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter keeps absurd values representable.
const maxRetryAfter = 365 * 24 * time.Hour

// RetryAfter reads how long a response asks to wait: seconds, where a part counts as a whole one,
// or a date in one of the three forms of HTTP. A date is counted from the response's own Date,
// because the clock of the server may be wrong. It reports whether there is a value that can be
// read; a date that is past is a wait of zero.
//
// The parser of go-retryablehttp is not used: it overflows into the past, obeys a wait of years,
// and knows one form of dates.
func RetryAfter(h http.Header) (wait time.Duration, ok bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if strings.Trim(value, "0123456789.") == "" {
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil && !math.IsInf(seconds, 1) {
			return 0, false
		}
		return time.Duration(min(math.Ceil(seconds), maxRetryAfter.Seconds())) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	from, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		from = time.Now()
	}
	return min(max(0, at.Sub(from)), maxRetryAfter), true
}

// isSigned reports whether a limiter says in its own words that it has refused the request: when
// to come back, or that nothing remains of what is allowed. A limit, or a rest above zero, is no
// such word, because many limiters label every response.
//
// No header of a gateway counts. That of Envoy, x-envoy-ratelimited, also keeps it from repeating
// a request, so services set it themselves, whatever they have done. Other gateways document none.
func isSigned(h http.Header) bool {
	if _, ok := RetryAfter(h); ok {
		return true
	}
	for _, name := range []string{"RateLimit-Remaining", "X-RateLimit-Remaining", "X-Rate-Limit-Remaining"} {
		for value := range strings.SplitSeq(strings.Join(h.Values(name), ","), ",") {
			if isZero(value) {
				return true
			}
		}
	}
	// A list of policies with their parameters, or, as in an earlier draft, of parameters alone.
	policies := literals.ReplaceAllString(strings.Join(h.Values("RateLimit"), ","), "")
	for parameter := range strings.FieldsFuncSeq(policies, func(c rune) bool { return c == ',' || c == ';' }) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(parameter), "="); name {
		case "r", "remaining":
			if isZero(value) {
				return true
			}
		}
	}
	return false
}

// literals are the strings and byte sequences of structured fields (RFC 9651), which may hold
// anything.
var literals = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|:[A-Za-z0-9+/=]*:`)

func isZero(value string) bool {
	n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return err == nil && n == 0
}
