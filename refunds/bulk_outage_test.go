package refunds_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// An outage costs the first thirty records, those in flight then, and the probes. The rest of the input is not taken.
// The next call of the client finds the service down.
func TestSubmitAllGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{status: func(string) int { return http.StatusGatewayTimeout }}
		client := s.client(t)
		for range 2 {
			began, results, last := time.Now(), 0, error(nil)
			s.change(func() { s.arrived = nil })
			for s, err := range client.SubmitAll(t.Context(), numbered(1000), refunds.BulkOptions{GiveUpAfter: 10 * time.Minute}) {
				if last = err; err != nil {
					continue
				}
				if results++; s.Outcome != unknown && !errors.Is(s.Err, refunds.ErrSuspended) || !errors.Is(s.Err, refunds.ErrServer) {
					t.Errorf("%v: %v", s, s.Err)
				}
			}
			if !errors.Is(last, refunds.ErrSuspended) || !errors.Is(last, refunds.ErrServer) || last.Error() != "refunds: submit all: the service keeps failing, submission is suspended" {
				t.Errorf("it ended with %v", last)
			}
			if took := time.Since(began); len(s.sent()) > results || results > 80 || took != 10*time.Minute {
				t.Errorf("%d sent, %d results in %v", len(s.sent()), results, took)
			}
		}
	})
}

// By default, nineteen minutes without a place for a request lose no record, and all are
// accepted soon after. Progress is told when the pause begins and ends.
func TestSubmitAllOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began time.Time
		s := &service{status: func(string) int {
			if since := time.Since(began); since >= time.Minute && since <= 20*time.Minute {
				return http.StatusTooManyRequests
			}
			return http.StatusOK
		}}
		client := s.client(t, refunds.WithRateLimit(20, 1))
		began = s.began
		var changes []string
		paused := false
		o := refunds.BulkOptions{Concurrency: 64, Progress: func(p refunds.BulkProgress) {
			if p.Paused() && p.Reason != "rate_limited" {
				t.Errorf("%+v", p)
			}
			if p.Paused() != paused {
				paused = p.Paused()
				changes = append(changes, fmt.Sprint(paused, " after ", int(time.Since(began).Minutes())))
			}
		}}
		counts, end := count(t, client, numbered(4_000), o)
		if took := time.Since(began); counts[accepted] != 4_000 || end != nil || took > 40*time.Minute {
			t.Errorf("%v in %v: %v", counts, took, end)
		}
		if len(changes) != 2 || changes[0] != "true after 1" {
			t.Errorf("paused: %q", changes)
		}
		// What waited for the limiter when the outage began does not leave.
		early := slices.DeleteFunc(s.sent(), func(a arrival) bool { return a.at < time.Minute || a.at > time.Minute+5*time.Second })
		if n := len(early); n == 0 || n > 35 {
			t.Errorf("%d requests in the first seconds of the outage", n)
		}
	})
}

// A record that is to wait for longer than a minute has its result. The others do not wait.
func TestSubmitAllDoesNotWaitForHours(t *testing.T) {
	for wait, refused := range map[string]int{"60": 0, "61": 1} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var once sync.Once
			client := clientOver(t, roundTripper(func(r *http.Request) (resp *http.Response, err error) {
				if refundID(r) == "rf_7" {
					once.Do(func() { resp, err = testkit.Answer(429, "", "Retry-After", wait)(r) })
				}
				if resp != nil || err != nil {
					return resp, err
				}
				time.Sleep(10 * time.Millisecond) // rf_7 is refused before all others are done
				return testkit.Answer(200, "")(r)
			}))
			counts, end := count(t, client, numbered(100), refunds.BulkOptions{})
			if took := time.Since(began); counts[accepted] != 100-refused || counts[rejected] != refused || end != nil || refused == 0 && took < time.Minute || took > 2*time.Minute {
				t.Errorf("after %s s: %v after %v: %v", wait, counts, took, end)
			}
		})
	}
}

// Records that the service always tells to come back fail alone. They hold the others up for
// seconds, or for minutes if those in flight are not more than they.
func TestSubmitAllGoesOnBesideRecordsThatAreAlwaysThrottled(t *testing.T) {
	for _, concurrency := range []int{1, 8} {
		for _, throttled := range [][]string{{"rf_0"}, {"rf_700", "rf_710", "rf_720", "rf_730"}} {
			synctest.Test(t, func(t *testing.T) {
				s := &service{
					latency: func(string) time.Duration { return 20 * time.Millisecond },
					status: func(id string) int {
						if slices.Contains(throttled, id) {
							return http.StatusTooManyRequests
						}
						return http.StatusOK
					},
				}
				longest := 3 * time.Minute
				if len(throttled) > concurrency+1 {
					longest = 10 * time.Minute
				}
				counts, err := count(t, s.client(t), numbered(1000), refunds.BulkOptions{Concurrency: concurrency})
				if took := time.Since(s.began); err != nil || counts[accepted] != 1000-len(throttled) || counts[rejected] != len(throttled) || took > longest {
					t.Errorf("%d in flight, %s throttled: %v after %v: %v", concurrency, throttled, counts, took, err)
				}
			})
		}
	}
}

// Accounts that are asked to wait hold up no other, also if the file begins with them.
func TestSubmitAllGoesOnBesidePausedAccounts(t *testing.T) {
	for _, concurrency := range []int{8, 64} {
		synctest.Test(t, func(t *testing.T) {
			const pause = 2 * time.Minute
			began := time.Now()
			var last atomic.Int64 // of the others
			client := clientOver(t, roundTripper(func(r *http.Request) (*http.Response, error) {
				time.Sleep(50 * time.Millisecond)
				if !strings.Contains(r.URL.Path, "paused") {
					last.Store(int64(time.Since(began)))
				} else if time.Since(began) < pause {
					return testkit.Answer(429, "", "Retry-After", "30")(r)
				}
				return testkit.Answer(200, "")(r)
			}))
			items := table(slices.Concat(repeat(200, "paused-1", "paused-2"), repeat(200, "other"))...)
			counts, end := count(t, client, items, refunds.BulkOptions{Concurrency: concurrency})
			if counts[accepted] != 600 || end != nil || time.Duration(last.Load()) > 10*time.Second {
				t.Errorf("%d in flight: %v, the others after %v: %v", concurrency, counts, time.Duration(last.Load()), end)
			}
		})
	}
}

// A rate limiter that asks for pauses is used nearly to its limit, because no record waits on
// its way for the end of a pause.
func TestSubmitAllWaitsOutARetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5000
		limiter, random := rate.NewLimiter(5, 1), rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		client := clientOver(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			passes := limiter.Allow()
			mu.Lock()
			took := time.Duration(40+random.IntN(20)) * time.Millisecond
			mu.Unlock()
			if time.Sleep(took); !passes {
				return testkit.Answer(429, "", "Retry-After", "1")(r)
			}
			return testkit.Answer(200, "")(r)
		}))
		began := time.Now()
		counts, end := count(t, client, numbered(n), refunds.BulkOptions{})
		if took := time.Since(began); counts[accepted] != n || end != nil || took > n*200*time.Millisecond*4/3 {
			t.Errorf("%v after %v: %v", counts, took, end)
		}
	})
}
