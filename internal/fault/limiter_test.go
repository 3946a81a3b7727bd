package fault

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func header(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestRetryAfter(t *testing.T) {
	const unreadable = -1
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration, layout string) string { return time.Now().UTC().Add(d).Format(layout) }
		asctime := "Mon Jan _2 15:04:05 2006"
		for value, want := range map[string]time.Duration{
			"0": 0, "1": time.Second, "60": time.Minute, "007": 7 * time.Second, " 5": 5 * time.Second, "5 ": 5 * time.Second, "\t5": 5 * time.Second,
			"1.5": 2 * time.Second, "0.07": time.Second, "2.0": 2 * time.Second, "0.0": 0, ".5": time.Second,
			"31536000": maxRetryAfter, "31536001": maxRetryAfter, "9223372037": maxRetryAfter, "18446744074": maxRetryAfter,
			"9223372036854775808": maxRetryAfter, strings.Repeat("9", 400): maxRetryAfter,

			in(90*time.Second, http.TimeFormat):                  90 * time.Second,
			in(90*time.Second, asctime):                          90 * time.Second,
			in(90*time.Second, "Monday, 02-Jan-06 15:04:05 GMT"): 90 * time.Second,
			in(-time.Hour, http.TimeFormat):                      0,
			in(0, http.TimeFormat):                               0,
			"Fri, 31 Dec 9999 23:59:59 GMT":                      maxRetryAfter,

			"": unreadable, " ": unreadable, "soon": unreadable, "-1": unreadable, "+1": unreadable, "1s": unreadable, "1,2": unreadable,
			"0x10": unreadable, "1e3": unreadable, "١": unreadable, "1 2": unreadable, ".": unreadable, "1.2.3": unreadable,
			"Sat, 01 Jan 2000 00:01:30 EST": unreadable, "2000-01-01T00:01:30Z": unreadable,
		} {
			got, ok := RetryAfter(header("Retry-After", value))
			if ok != (want != unreadable) || ok && got != want {
				t.Errorf("%q: %v, %t, want %v", value, got, ok, want)
			}
		}

		// The clock of the server is wrong.
		for _, ahead := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
			h := header("Date", in(ahead, http.TimeFormat), "Retry-After", in(ahead+3*time.Second, http.TimeFormat))
			if got, _ := RetryAfter(h); got != 3*time.Second {
				t.Errorf("%v ahead: %v", ahead, got)
			}
		}
		h := header("Date", "today", "Retry-After", in(3*time.Second, http.TimeFormat))
		if got, _ := RetryAfter(h); got != 3*time.Second {
			t.Errorf("without a Date that can be read: %v", got)
		}
	})
	if _, ok := RetryAfter(nil); ok {
		t.Error("a value without headers")
	}
}

// No value leads to a wait that is negative, absurd, or different from its digits.
func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"1", "-1", "1.5", "1e9", "99999999999999999999", "Sat, 01 Jan 2000 00:01:30 GMT", " 5 ", "Sun Nov  6 08:49:37 1994"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, _ := RetryAfter(http.Header{"Retry-After": {value}})
		if got < 0 || got > maxRetryAfter {
			t.Errorf("%q: %v", value, got)
		}
		seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		if want := time.Duration(min(seconds, 365*24*3600)) * time.Second; err == nil && got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	})
}

// TestSignatures are those of limiters and gateways, as they send them.
func TestSignatures(t *testing.T) {
	for _, test := range []struct {
		name   string
		header http.Header
		signed bool
	}{
		{"nginx, HAProxy and Flask-Limiter by default", header(), false},
		{"a wait", header("Retry-After", "7"), true},
		{"no wait", header("Retry-After", "0"), true},
		{"a date that is past", header("Retry-After", "Mon, 01 Jan 2001 00:00:00 GMT"), true},
		{"a wait that cannot be read", header("Retry-After", "soon"), false},
		{"an empty wait", header("Retry-After", ""), false},

		{"nothing remains", header("RateLimit-Limit", "10", "RateLimit-Remaining", "0", "RateLimit-Reset", "3"), true},
		{"nothing remains, with an X", header("X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "0"), true},
		{"nothing remains, with more hyphens", header("X-Rate-Limit-Limit", "10", "X-Rate-Limit-Remaining", " 0 "), true},
		{"nothing remains of the second of two", header("X-RateLimit-Remaining", "3", "X-RateLimit-Remaining", "0"), true},
		{"nothing remains, in a list", header("X-RateLimit-Remaining", "14000, 0"), true},
		{"something remains", header("RateLimit-Remaining", "10", "X-RateLimit-Remaining", "1", "X-Rate-Limit-Remaining", "0.5"), false},
		{"what remains is not known", header("X-RateLimit-Remaining", "-1", "X-Rate-Limit-Remaining", "", "RateLimit-Remaining", "none"), false},
		{"a limit alone", header("X-RateLimit-Limit", "0", "RateLimit-Limit", "0"), false},
		{"a reset alone", header("X-RateLimit-Reset", "0", "RateLimit-Reset", "0"), false},

		{"a policy, of which nothing remains", header("RateLimit", `"default";r=0;t=30`), true},
		{"the second of two policies", header("RateLimit", `"burst";r=5;t=1, "daily"; r=0; t=3600`), true},
		{"in another line", header("RateLimit", `"burst";r=5`, "RateLimit", `"daily";r=0`), true},
		{"an earlier draft", header("RateLimit", "limit=100, remaining=0, reset=50"), true},
		{"a policy, of which something remains", header("RateLimit", `"default";r=10;t=0`), false},
		{"a policy with an odd name", header("RateLimit", `"a;r=0, \";r=0";r=5;pk=:cj0w:`), false},
		{"the policies themselves", header("RateLimit-Policy", `"default";q=0;r=0;w=1`), false},
		{"an earlier draft, something remains", header("RateLimit", "limit=0, remaining=7, reset=0"), false},

		{"a gateway's word against retries", header("X-Envoy-Ratelimited", "true"), false},
	} {
		verdict := JudgeResponse(Request{Write: true}, http.StatusTooManyRequests, test.header)
		if signed := verdict.Outcome == OutcomeRejected; signed != test.signed {
			t.Errorf("%s: signed %t", test.name, signed)
		}
		// A signature is one of a 429 only: a service can be down after it has processed a request.
		if verdict := JudgeResponse(Request{Write: true}, http.StatusServiceUnavailable, test.header); verdict.Outcome != OutcomeUnknown {
			t.Errorf("%s: a 503 is %s", test.name, verdict.Outcome)
		}
	}
}
