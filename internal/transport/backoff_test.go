package transport

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func retryAfter(value string) time.Duration {
	return parseRetryAfter(http.Header{"Retry-After": {value}})
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration, layout string) string { return time.Now().UTC().Add(d).Format(layout) }
		asctime := "Mon Jan _2 15:04:05 2006"
		for value, want := range map[string]time.Duration{
			"0": 0, "1": time.Second, "60": time.Minute, "007": 7 * time.Second, " 5": 5 * time.Second, "5 ": 5 * time.Second, "\t5": 5 * time.Second,
			"31536000": retryAfterCeiling, "31536001": retryAfterCeiling, "9223372037": retryAfterCeiling, "18446744074": retryAfterCeiling,
			"9223372036854775808": retryAfterCeiling, strings.Repeat("9", 400): retryAfterCeiling,

			in(90*time.Second, http.TimeFormat):                  90 * time.Second,
			in(90*time.Second, asctime):                          90 * time.Second,
			in(90*time.Second, "Monday, 02-Jan-06 15:04:05 GMT"): 90 * time.Second,
			in(-time.Hour, http.TimeFormat):                      0,
			in(0, http.TimeFormat):                               0,
			"Fri, 31 Dec 9999 23:59:59 GMT":                      retryAfterCeiling,

			"": 0, " ": 0, "soon": 0, "1.5": 0, "-1": 0, "+1": 0, "1s": 0, "1,2": 0, "0x10": 0, "1e3": 0, "١": 0, "1 2": 0,
			"Sat, 01 Jan 2000 00:01:30 EST": 0, "2000-01-01T00:01:30Z": 0,
		} {
			if got := retryAfter(value); got != want {
				t.Errorf("%q: %v, want %v", value, got, want)
			}
		}
	})
	if got := parseRetryAfter(nil); got != 0 {
		t.Errorf("without headers: %v", got)
	}
}

// FuzzRetryAfter proves that no value makes a wait that is negative, absurd, or
// not what the digits say.
func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"1", "-1", "1e9", "99999999999999999999", "Sat, 01 Jan 2000 00:01:30 GMT", " 5 ", "Sun Nov  6 08:49:37 1994"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got := retryAfter(value)
		if got < 0 || got > retryAfterCeiling {
			t.Errorf("%q: %v", value, got)
		}
		seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		if want := time.Duration(min(seconds, 365*24*3600)) * time.Second; err == nil && got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	})
}

// spread returns the least and the greatest of many draws.
func spread(draw func() time.Duration) (least, greatest time.Duration) {
	least = draw()
	for range 2000 {
		d := draw()
		least, greatest = min(least, d), max(greatest, d)
	}
	return least, greatest
}

// TestBackoff proves that waits are spread over the whole of a range that
// doubles up to its limit.
func TestBackoff(t *testing.T) {
	s := &Settings{WaitBase: 200 * time.Millisecond, WaitMax: 5 * time.Second}
	for _, test := range []struct {
		s       *Settings
		n       int
		limited bool
		bound   time.Duration
	}{
		{s, 0, false, 200 * time.Millisecond}, {s, 1, false, 400 * time.Millisecond}, {s, 3, false, 1600 * time.Millisecond},
		{s, 5, false, 5 * time.Second}, {s, 20, false, 5 * time.Second}, {s, 10_000, false, 5 * time.Second},
		{s, 0, true, time.Second}, {s, 1, true, 2 * time.Second}, {s, 4, true, 5 * time.Second},
		{&Settings{WaitBase: 10 * time.Millisecond, WaitMax: 100 * time.Millisecond}, 0, true, 100 * time.Millisecond},
		{&Settings{WaitBase: 2 * time.Second, WaitMax: 9 * time.Second}, 0, true, 2 * time.Second},
		{&Settings{WaitBase: 1 << 62, WaitMax: 1<<63 - 1}, 3, false, 1<<63 - 1},
	} {
		least, greatest := spread(func() time.Duration { return test.s.backoff(test.n, test.limited) })
		// Of 2,000 draws the tenths at both ends are all but certain to be met.
		if least < 0 || greatest > test.bound || least > test.bound/10 || greatest < test.bound/10*9 {
			t.Errorf("retry %d, limited %t: %v to %v, want 0 to %v", test.n, test.limited, least, greatest, test.bound)
		}
	}
	for _, s := range []*Settings{{}, {WaitMax: time.Second}} {
		if _, greatest := spread(func() time.Duration { return s.backoff(3, true) }); greatest != 0 {
			t.Errorf("without a base: %v", greatest)
		}
	}
}

func TestObey(t *testing.T) {
	for _, test := range []struct{ wait, retryAfter, least, greatest time.Duration }{
		{300, 0, 300, 300},
		{0, 5 * time.Second, 5 * time.Second, 5500 * time.Millisecond},
		{0, time.Minute, time.Minute, 61 * time.Second},
		{10 * time.Second, 5 * time.Second, 10 * time.Second, 10 * time.Second},
	} {
		least, greatest := spread(func() time.Duration { return obey(test.wait, test.retryAfter) })
		if least < test.least || greatest > test.greatest {
			t.Errorf("%+v: %v to %v", test, least, greatest)
		}
	}
}

// TestWaits proves when the requests of a call leave.
func TestWaits(t *testing.T) {
	for _, test := range []struct {
		name     string
		answer   func(*http.Request) (*http.Response, error)
		deadline time.Duration // 0: none
		requests int
		least    time.Duration // of each wait
		greatest []time.Duration
		reported time.Duration // the failure's RetryAfter
	}{
		{"503", status(503), 0, 4, 0, []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond}, 0},
		{"429", status(429), 0, 4, 0, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, 0},
		{"503 with a wait", status(503, "Retry-After", "10"), 0, 4, 10 * time.Second, []time.Duration{11 * time.Second, 11 * time.Second, 11 * time.Second}, 10 * time.Second},
		{"a minute", status(429, "Retry-After", "60"), 0, 4, time.Minute, []time.Duration{61 * time.Second, 61 * time.Second, 61 * time.Second}, time.Minute},
		{"more than a minute", status(429, "Retry-After", "61"), 0, 1, 0, nil, 61 * time.Second},
		{"for ever", status(503, "Retry-After", strings.Repeat("9", 99)), 0, 1, 0, nil, retryAfterCeiling},
		{"beyond the deadline", status(429, "Retry-After", "30"), 30 * time.Second, 1, 0, nil, 30 * time.Second},
		{"the second beyond the deadline", status(429, "Retry-After", "30"), 40 * time.Second, 2, 30 * time.Second, []time.Duration{31 * time.Second}, 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.deadline > 0 {
					bounded, cancel := context.WithTimeout(ctx, test.deadline)
					defer cancel()
					ctx = bounded
				}
				network := serve(test.answer)
				r := newClient(t, network).get(ctx)
				took := time.Since(network.began)
				if network.requests() != test.requests || r.Failure == nil || r.Failure.RetryAfter != test.reported {
					t.Fatalf("%d requests, failure %+v", network.requests(), r.Failure)
				}
				for i, greatest := range test.greatest {
					if wait := network.arrived[i+1] - network.arrived[i]; wait < test.least || wait > greatest {
						t.Errorf("wait %d was %v, want %v to %v", i+1, wait, test.least, greatest)
					}
				}
				if took != network.arrived[test.requests-1] {
					t.Errorf("the call ended after %v, its last answer came after %v", took, network.arrived[test.requests-1])
				}
				// A wait that would not have been met leaves the answer as the error.
				if ctx.Err() != nil {
					t.Error(ctx.Err())
				}
			})
		})
	}
}
