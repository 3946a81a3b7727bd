package refunds_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// An outage costs the first ten records and the probes, which are at most 16 in ten minutes however
// the jitter falls. The rest of the input is not taken. The next call of the client waits as long.
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
				if results++; s.Outcome != unknown || !errors.Is(s.Err, refunds.ErrServer) {
					t.Errorf("%v: %v", s, s.Err)
				}
			}
			if !errors.Is(last, refunds.ErrSuspended) || !errors.Is(last, refunds.ErrServer) || last.Error() != "refunds: submit all: the service kept failing, submission is suspended" {
				t.Errorf("it ended with %v", last)
			}
			if took := time.Since(began); len(s.sent()) != results || results > 26 || took != 10*time.Minute {
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
			if p.Paused == p.PausedUntil.IsZero() || p.Paused && p.Reason != "rate_limited" {
				t.Errorf("%+v", p)
			}
			if p.Paused != paused {
				paused = p.Paused
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
		if n := len(early); n == 0 || n > 12 {
			t.Errorf("%d requests in the first seconds of the outage", n)
		}
	})
}

// A failure that every record would meet pauses the submission. The refusal of one record does
// not, nor does a failure among responses.
func TestSubmitAllTellsAnOutageFromARefusedRecord(t *testing.T) {
	down := errors.New("down")
	source := refunds.WithTokenSource(refunds.TokenFunc(func(context.Context) (string, error) { return "", down }))
	for name, test := range map[string]struct {
		statuses []int // in turn
		opts     []refunds.Option
		pauses   bool
	}{
		"409":                     {[]int{409}, nil, false},
		"422":                     {[]int{422}, nil, false},
		"a failure, then success": {[]int{503, 200, 200, 200, 200}, nil, false},
		"a failure, then 400":     {[]int{503, 400, 400, 400, 400}, nil, false},
		"503":                     {[]int{503}, nil, true},
		"429":                     {[]int{429}, nil, true},
		"401":                     {[]int{401}, nil, true},
		"307":                     {[]int{307}, nil, true},
		"a mixture":               {[]int{503, 401, 429, 408, 302}, nil, true},
		"no credential":           {nil, []refunds.Option{source}, true},
		"no limiter":              {nil, []refunds.Option{refunds.WithLimiter(refusal(down))}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			s := &service{status: func(string) int { n++; return test.statuses[(n-1)%len(test.statuses)] }}
			paused := false
			o := refunds.BulkOptions{Concurrency: 1, Progress: func(p refunds.BulkProgress) { paused = paused || p.Paused }}
			for one, end := range s.client(t, test.opts...).SubmitAll(t.Context(), numbered(5), o) {
				err := end
				if err == nil {
					err = one.Err
				}
				// The error of a record that was not sent tells what failed before it.
				if failed, ok := errors.AsType[*refunds.Error](err); ok && len(test.opts) > 0 && failed.Cause() != down {
					t.Errorf("%s: %v is caused by %v", name, err, failed.Cause())
				}
			}
			if paused != test.pauses {
				t.Errorf("%s: paused %v", name, paused)
			}
		})
	}
}

// No record is sent after HoldFor: a queue would have delivered its message again. The result
// of one that was taken says so at once.
func TestSubmitAllHoldsNoRecordForLonger(t *testing.T) {
	for name, test := range map[string]struct {
		status  int
		latency time.Duration
		opts    []refunds.Option
		o       refunds.BulkOptions
		longest time.Duration
	}{
		"by default":           {503, 0, nil, refunds.BulkOptions{}, time.Hour},
		"a queue, by default":  {429, 0, nil, refunds.BulkOptions{ReadAhead: true}, 2 * time.Minute},
		"a queue, no limit":    {429, 0, nil, refunds.BulkOptions{HoldFor: -1, ReadAhead: true}, time.Hour},
		"a queue with a limit": {503, 0, nil, refunds.BulkOptions{HoldFor: 10 * time.Second, ReadAhead: true}, 10 * time.Second},
		"put back, slowly":     {429, 5 * time.Second, nil, refunds.BulkOptions{HoldFor: 10 * time.Second}, 10 * time.Second},
		"put back":             {429, 0, nil, refunds.BulkOptions{HoldFor: 10 * time.Second}, 10 * time.Second},
		"a limiter":            {200, 0, []refunds.Option{refunds.WithRateLimit(rate.Every(time.Minute), 1)}, refunds.BulkOptions{HoldFor: 10 * time.Second}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{status: func(string) int { return test.status }, latency: func(string) time.Duration { return test.latency }}
				client := s.client(t, test.opts...)
				began := map[string]time.Duration{}
				var mu sync.Mutex // with ReadAhead the input has a goroutine of its own
				input := func(yield func(refunds.Item) bool) {
					for item := range numbered(1000) {
						mu.Lock()
						began[item.Refund.RefundID] = time.Since(s.began)
						mu.Unlock()
						if !yield(item) {
							return
						}
					}
				}
				first := time.Duration(0) // result of a record that was held for too long
				for one, err := range client.SubmitAll(t.Context(), input, test.o) {
					if err != nil || !errors.Is(one.Err, refunds.ErrSuspended) {
						continue
					}
					// One that was sent before is what its last answer says, and has that of no other.
					failed, _ := errors.AsType[*refunds.Error](one.Err)
					want, status := notSent, 0
					if one.Attempts > 0 {
						want, status = rejected, test.status
					}
					if one.Outcome != want || failed.StatusCode != status || (failed.Header() != nil) != (one.Attempts > 0) {
						t.Errorf("%v after %d attempts: %v", one, one.Attempts, one.Err)
					}
					mu.Lock()
					first = cmp.Or(first, time.Since(s.began))
					waited := time.Since(s.began) - began[one.RefundID]
					mu.Unlock()
					if !test.o.ReadAhead && waited > test.longest || !errors.Is(one.Err, refunds.ErrSuspended) || one.Action() != resubmit || failed.RetryAfter < 0 || failed.RetryAfter > 2*time.Minute {
						t.Errorf("%v after %v: %v", one, waited, one.Err)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				for _, a := range s.sent() {
					if waited := a.at - began[a.id]; waited > test.longest {
						t.Errorf("%s was sent after %v", a.id, waited)
					}
				}
				// At the latest, it comes with a probe. Without a limit, the end of the submission brings it.
				if test.longest < time.Hour && (first == 0 || first > test.longest+2*time.Minute) || test.longest == time.Hour && 0 < first && first < 30*time.Minute {
					t.Errorf("the first record was held for %v", first)
				}
			})
		})
	}
}

// hangsOnce is a limiter that lets no call with this number through, and all others at once.
func hangsOnce(hangs int64) func(context.Context) error {
	var calls atomic.Int64
	return func(ctx context.Context) error {
		if calls.Add(1) == hangs {
			<-ctx.Done()
		}
		return ctx.Err()
	}
}

// HoldFor counts from when each record was taken, also behind one with the same refund_id. One
// that was held for too long does not hold up the next.
func TestHoldForIsOfEachRecord(t *testing.T) {
	for name, test := range map[string]struct {
		latency time.Duration
		down    time.Duration
		limiter func(context.Context) error
		want    map[int]string
	}{
		"in flight":                        {30 * time.Second, 0, nil, map[int]string{0: "accepted after 30s", 1: "held too long after 12s", 2: "accepted after 10m30s"}},
		"in a pause":                       {0, 30 * time.Second, nil, map[int]string{0: "held too long after 10s", 1: "held too long after 12s", 2: "accepted after 10m0s"}},
		"in flight, and then at a limiter": {8 * time.Second, 0, hangsOnce(2), map[int]string{0: "accepted after 8s", 1: "held too long after 12s", 2: "accepted after 10m8s"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: func(string) time.Duration { return test.latency }}
			s.status = func(string) int {
				if time.Since(s.began) < test.down {
					return http.StatusTooManyRequests
				}
				return http.StatusOK
			}
			input := func(yield func(refunds.Item) bool) {
				for _, at := range []time.Duration{0, 2 * time.Second, 10 * time.Minute} {
					time.Sleep(time.Until(s.began.Add(at)))
					named("rf")(yield)
				}
			}
			client, got := s.client(t), map[int]string{}
			if test.limiter != nil {
				client = s.client(t, refunds.WithLimiter(limiterFunc(test.limiter)))
			}
			for one := range client.SubmitAll(t.Context(), input, refunds.BulkOptions{ReadAhead: true, HoldFor: 10 * time.Second}) {
				end := one.Outcome.String()
				if errors.Is(one.Err, refunds.ErrSuspended) { // it may have been a probe before
					end = "held too long"
				}
				got[one.Index] = fmt.Sprint(end, " after ", time.Since(s.began))
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("%s: %v, want %v", name, got, test.want)
			}
		})
	}
}

// HoldFor also ends the wait before a retry. Nobody has canceled anything then, and the error says
// what happened: the record's outcome is that of its attempt.
func TestHoldForEndsARetry(t *testing.T) {
	for status, want := range map[int]refunds.Action{425: find, 429: resubmit, 503: find} {
		synctest.Test(t, func(t *testing.T) {
			fake := refundstest.NewServer(t)
			fake.Script(refundstest.Fault{Status: status, RetryAfter: 30 * time.Second})
			o := refunds.BulkOptions{HoldFor: 10 * time.Second}
			for one := range fake.Client(refunds.WithResubmit()).SubmitAll(t.Context(), numbered(1), o) {
				failed, _ := errors.AsType[*refunds.Error](one.Err)
				if one.Action() != want || one.Attempts != 1 || failed.StatusCode != status || failed.RetryAfter != 30*time.Second ||
					!errors.Is(failed, refunds.ErrSuspended) || errors.Is(failed, context.Canceled) || !strings.Contains(failed.Error(), "within HoldFor") {
					t.Errorf("%d: %v: %v", status, one.Outcome, one.Err)
				}
			}
		})
	}
}

// HoldFor ends no request that is in flight. One that the caller's deadline ends says so.
func TestHoldForEndsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := refundstest.NewServer(t)
		fake.Script(refundstest.Fault{Delay: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		o := refunds.BulkOptions{HoldFor: 10 * time.Second, Grace: time.Second}
		for one := range fake.Client().SubmitAll(ctx, numbered(1), o) {
			if one.Outcome != unknown || !errors.Is(one.Err, context.DeadlineExceeded) || errors.Is(one.Err, refunds.ErrSuspended) {
				t.Errorf("%v: %v", one.Outcome, one.Err)
			}
			break
		}
	})
}

// A record that is to wait for longer than a minute has its result. The others wait for a minute.
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
			if took := time.Since(began); counts[accepted] != 100-refused || counts[rejected] != refused || end != nil || took < time.Minute || took > 2*time.Minute {
				t.Errorf("after %s s: %v after %v: %v", wait, counts, took, end)
			}
		})
	}
}

// A request that gets no response before its caller's deadline counts as a failure of the
// service, unless the deadline was very short.
func TestSubmitPausesAfterDeadlines(t *testing.T) {
	for deadline, pauses := range map[time.Duration]bool{900 * time.Millisecond: false, 2 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			client := newClient(t, newMock(testkit.Silent))
			var err error
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				_, err = client.Submit(ctx, "acct-1", record())
				cancel()
			}
			if errors.Is(err, refunds.ErrSuspended) != pauses {
				t.Errorf("after %v: %v", deadline, err)
			}
		})
	}
}

// Records that the service always tells to come back fail alone. They hold the others up for
// seconds, or for minutes if those in flight are not more than they.
func TestSubmitAllGoesOnBesideRecordsThatAreAlwaysThrottled(t *testing.T) {
	for _, concurrency := range []int{1, 8, 64} {
		for _, throttled := range [][]string{{"rf_0"}, {"rf_7"}, {"rf_0", "rf_1"}, {"rf_500", "rf_501", "rf_502"}, {"rf_700"}, {"rf_700", "rf_710", "rf_720", "rf_730"}} {
			if testing.Short() && (concurrency == 1 || len(throttled) == 2) {
				continue
			}
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
				longest := 3 * time.Minute // the longest of 60 runs: 66 s
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
