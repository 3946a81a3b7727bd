package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// An outage costs the first two records and the probes. The rest of the input is not taken.
func TestSubmitAllGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{
			latency: func(string) time.Duration { return 10 * time.Millisecond },
			status:  func(string) int { return http.StatusGatewayTimeout },
		}
		taken, results, last := 0, 0, error(nil)
		input := func(yield func(*refunds.Refund) bool) {
			for r := range numbered(1000) {
				if taken++; !yield(r) {
					return
				}
			}
		}
		for s, err := range s.client(t).SubmitAll(t.Context(), refunds.Items("acct", input), refunds.BulkOptions{GiveUpAfter: 10 * time.Minute}) {
			if last = err; err != nil {
				continue
			}
			results++
			if s.Outcome != unknown || !errors.Is(s.Err, refunds.ErrServer) {
				t.Errorf("%v: %v", s, s.Err)
			}
		}
		if !errors.Is(last, refunds.ErrSuspended) || !errors.Is(last, refunds.ErrServer) || last.Error() != "refunds: submit all: the service kept failing, submission is suspended" {
			t.Errorf("it ended with %v", last)
		}
		if took := time.Since(s.began); taken != results || len(s.arrived) != results || took.Round(time.Second) != 10*time.Minute {
			t.Errorf("%d taken, %d sent, %d results in %v", taken, len(s.arrived), results, took)
		}
		var probes []time.Duration
		for i, a := range s.arrived[1:] {
			probes = append(probes, a.at-s.arrived[i].at-10*time.Millisecond)
		}
		if probes[0] != 0 || len(probes) > 20 {
			t.Errorf("%v", probes)
		}
		shortened := false
		for i, wait := range probes[1:] {
			grown := min(time.Second<<i, 2*time.Minute)
			shortened = shortened || wait > grown/2
			if wait < grown/2 || wait > grown {
				t.Errorf("probe %d came after %v, want half of %v and more", i, wait, grown)
			}
		}
		if !shortened {
			t.Errorf("no probe came at random: %v", probes)
		}
	})
}

// Nineteen minutes without a connection lose no record that may be held for as long, and all
// are accepted soon after.
func TestSubmitAllOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := refundstest.NewServer(t)
		began := time.Now()
		network := fake.HTTPClient().Transport.(*http.Transport).Clone()
		network.DisableKeepAlives = true
		dial := network.DialTLSContext
		network.DialTLSContext = func(ctx context.Context, to, address string) (net.Conn, error) {
			if since := time.Since(began); since >= time.Minute && since <= 20*time.Minute {
				return nil, &net.OpError{Op: "dial", Net: to, Err: syscall.ECONNREFUSED}
			}
			return dial(ctx, to, address)
		}
		client := fake.Client(refunds.WithRateLimit(1, 1), refunds.WithHTTPClient(&http.Client{Transport: network}))
		var pauses, resumes int
		paused := false
		o := refunds.BulkOptions{HoldFor: -1, Progress: func(p refunds.BulkProgress) {
			if p.Paused == p.PausedUntil.IsZero() || p.Paused && p.Reason != "no_response" {
				t.Errorf("%+v", p)
			}
			switch {
			case p.Paused && !paused:
				pauses++
			case !p.Paused && paused:
				resumes++
			}
			paused = p.Paused
		}}
		counts, end := count(t, client, refunds.Items("acct", numbered(1000)), o)
		if n := len(fake.Recorded()); counts[refunds.OutcomeAccepted] != 1000 || n != 1000 || end != nil || pauses != 1 || resumes != 1 {
			t.Errorf("recorded %d of %v, paused %d times, resumed %d times: %v", n, counts, pauses, resumes, end)
		}
		if took := time.Since(began); took > 40*time.Minute {
			t.Errorf("took %v", took)
		}
	})
}

// Requests that were sent before an outage, and succeed during it, do not make it cost more.
func TestSubmitAllIsNotToldOfAnOutageByOldRequests(t *testing.T) {
	for name, test := range map[string]struct {
		begins time.Duration // of the outage, for new requests
		takes  func(i int64) time.Duration
		late   bool // half of the old requests fail during the outage
	}{
		"the service drains": {10 * time.Second, func(i int64) time.Duration { return time.Duration(1+i%7) * time.Second }, false},
		"some still succeed": {3 * time.Second, func(i int64) time.Duration { return time.Duration(i*37%60) * 100 * time.Millisecond }, true},
	} {
		for _, concurrency := range []int{1, 8, 64} {
			synctest.Test(t, func(t *testing.T) {
				began, sent := time.Now(), atomic.Int64{}
				isDown := func() bool { return time.Since(began) > test.begins && time.Since(began) < time.Minute+test.begins }
				client := clientOver(t, roundTripper(func(r *http.Request) (*http.Response, error) {
					i := sent.Add(1)
					if isDown() {
						return testkit.Answer(503, "")(r)
					}
					if time.Sleep(test.takes(i)); test.late && isDown() && i%2 == 0 {
						return testkit.Answer(503, "")(r)
					}
					return testkit.Answer(200, "")(r)
				}))
				counts, _ := count(t, client, refunds.Items("acct", numbered(concurrency*20)), refunds.BulkOptions{Concurrency: concurrency})
				const first, probes = 4, 8
				if n := counts[unknown]; n < 5 || n > first+concurrency+probes || counts[refunds.OutcomeAccepted] != concurrency*20-n {
					t.Errorf("%s, %d in flight: %v", name, concurrency, counts)
				}
			})
		}
	}
}

// A failure that every record would meet pauses the submission. The refusal of one record does
// not, nor does a failure among responses.
func TestSubmitAllTellsAnOutageFromARefusedRecord(t *testing.T) {
	down := refunds.WithTokenSource(refunds.TokenFunc(func(context.Context) (string, error) { return "", errors.New("down") }))
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
		"no credential":           {nil, []refunds.Option{down}, true},
		"no limiter":              {nil, []refunds.Option{refunds.WithLimiter(refusal{errors.New("down")})}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			s := &service{status: func(string) int { n++; return test.statuses[(n-1)%len(test.statuses)] }}
			paused := false
			o := refunds.BulkOptions{Concurrency: 1, Progress: func(p refunds.BulkProgress) { paused = paused || p.Paused }}
			count(t, s.client(t, append(test.opts, refunds.WithMaxRetries(0))...), refunds.Items("acct", numbered(5)), o)
			if paused != test.pauses {
				t.Errorf("%s: paused %v", name, paused)
			}
		})
	}
}

// Progress is told of a pause when it begins, even if no record has its result yet.
func TestSubmitAllTellsOfAPauseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{status: func(string) int { return http.StatusTooManyRequests }}
		told := time.Duration(-1)
		o := refunds.BulkOptions{GiveUpAfter: time.Minute, Progress: func(p refunds.BulkProgress) {
			if p.Paused && told < 0 && p.Done == 0 {
				told = time.Since(s.began)
			}
		}}
		count(t, s.client(t), refunds.Items("acct", numbered(6)), o)
		if told != 0 {
			t.Errorf("told after %v", told)
		}
	})
}

// The requests that the end of the context cuts off say nothing about the service.
func TestSubmitAllIsNotPausedByItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func(id string) time.Duration {
			if id == "rf_0" {
				return 0
			}
			return time.Hour
		}}
		client := s.warmClient(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var last refunds.BulkProgress
		o := refunds.BulkOptions{Grace: -1, Progress: func(p refunds.BulkProgress) {
			if last = p; p.Paused {
				t.Error("paused")
			}
		}}
		for s := range client.SubmitAll(ctx, refunds.Items("acct", numbered(1000)), o) {
			if s.Index == 0 {
				time.Sleep(2 * time.Second) // and then all else has settled
			}
		}
		if last.Unknown != 8 {
			t.Errorf("%+v", last)
		}
	})
}

// A record that was taken before an outage, or that waits in the input's yield, has its result
// within HoldFor: a queue has to hide the message for that long.
func TestSubmitAllHoldsNoRecordForLonger(t *testing.T) {
	for name, test := range map[string]struct {
		status  int
		opts    []refunds.Option
		o       refunds.BulkOptions
		longest time.Duration // between the input's yield being called and the result
	}{
		"by default":            {503, nil, refunds.BulkOptions{}, 2 * time.Minute},
		"by default, ReadAhead": {503, nil, refunds.BulkOptions{ReadAhead: true}, 2 * time.Minute},
		"less":                  {503, nil, refunds.BulkOptions{HoldFor: 10 * time.Second}, 10 * time.Second},
		"less, ReadAhead":       {503, nil, refunds.BulkOptions{HoldFor: 10 * time.Second, ReadAhead: true}, 10 * time.Second},
		"put back":              {429, nil, refunds.BulkOptions{HoldFor: 10 * time.Second}, 10 * time.Second},
		"a limiter":             {200, []refunds.Option{refunds.WithRateLimit(rate.Every(time.Minute), 1)}, refunds.BulkOptions{HoldFor: 10 * time.Second}, 10 * time.Second},
		"for good":              {503, nil, refunds.BulkOptions{HoldFor: -1, ReadAhead: true}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{
					latency: func(string) time.Duration { return 10 * time.Millisecond },
					status:  func(string) int { return test.status },
				}
				var began sync.Map // by refund_id; with ReadAhead the input has a goroutine of its own
				held := 0
				input := func(yield func(*refunds.Refund) bool) {
					for r := range numbered(1000) {
						began.Store(r.RefundID, time.Now())
						if !yield(r) {
							return
						}
					}
				}
				for s, err := range s.client(t, test.opts...).SubmitAll(t.Context(), refunds.Items("acct", input), test.o) {
					if err != nil {
						if !errors.Is(err, refunds.ErrSuspended) {
							t.Error(err)
						}
						continue
					}
					// An attempt may begin at the last moment.
					at, _ := began.Load(s.RefundID)
					if waited := time.Since(at.(time.Time)); waited > test.longest+time.Second {
						t.Errorf("%v: after %v", s, waited)
					}
					if s.Outcome != refunds.OutcomeNotSent {
						continue
					}
					held++
					failed, _ := errors.AsType[*refunds.Error](s.Err)
					if !errors.Is(s.Err, refunds.ErrSuspended) || s.Action() != refunds.ActionResubmit || failed.RetryAfter > 2*time.Minute {
						t.Errorf("%v: %v", s, s.Err)
					}
				}
				if test.o.HoldFor > 0 && (test.o.ReadAhead || test.status != 503) && held == 0 {
					t.Error("no record was held for HoldFor")
				}
			})
		})
	}
}

// HoldFor counts from when each record was taken, also behind one with the same refund_id.
func TestHoldForIsOfEachRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func(string) time.Duration { return 30 * time.Second }}
		input := func(yield func(*refunds.Refund) bool) {
			for i := range 3 {
				time.Sleep(time.Duration(i) * 2 * time.Second)
				yield(&refunds.Refund{RefundID: "rf"})
			}
		}
		client, got := s.client(t), map[int]string{}
		for one := range client.SubmitAll(t.Context(), refunds.Items("acct", input), refunds.BulkOptions{ReadAhead: true, HoldFor: 10 * time.Second}) {
			got[one.Index] = fmt.Sprint(one.Outcome, " after ", time.Since(s.began))
		}
		if want := map[int]string{0: "accepted after 30s", 1: "not sent after 12s", 2: "not sent after 16s"}; !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// A record that is to wait for longer than a minute has its result. The others wait for a minute.
func TestSubmitAllDoesNotWaitForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		client := clientOver(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			if refundID(r) == "rf_7" {
				return testkit.Answer(429, "", "Retry-After", "61")(r)
			}
			return testkit.Answer(200, "")(r)
		}))
		counts, end := count(t, client, refunds.Items("acct", numbered(100)), refunds.BulkOptions{HoldFor: -1})
		if took := time.Since(began); counts[refunds.OutcomeAccepted] != 99 || counts[rejected] != 1 || end != nil || took > 2*time.Minute {
			t.Errorf("%v after %v: %v", counts, took, end)
		}
	})
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

// Records that the service always tells to come back hold the others up for minutes. They
// fail alone, however long records may be held and however few are in flight.
func TestSubmitAllGoesOnBesideRecordsThatAreAlwaysThrottled(t *testing.T) {
	for _, concurrency := range []int{1, 8, 64} {
		for _, throttled := range [][]string{{"rf_0"}, {"rf_7"}, {"rf_0", "rf_1"}, {"rf_500", "rf_501", "rf_502"}} {
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
				o := refunds.BulkOptions{Concurrency: concurrency, HoldFor: -1}
				counts, err := count(t, s.client(t), refunds.Items("acct", numbered(1000)), o)
				if n := len(throttled); err != nil || counts[refunds.OutcomeAccepted] != 1000-n || counts[refunds.OutcomeRejected] != n || time.Since(s.began) > 30*time.Minute {
					t.Errorf("%d in flight, %s throttled: %v after %v: %v", concurrency, throttled, counts, time.Since(s.began), err)
				}
			})
		}
	}
}

// A rate limiter that asks for pauses is used nearly to its limit, because no record waits on
// its way for the end of a pause.
func TestSubmitAllWaitsOutARetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		tokens, last := 1.0, time.Now()
		random := rand.New(rand.NewPCG(1, 2))
		client := clientOver(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			tokens, last = min(1, tokens+5*time.Since(last).Seconds()), time.Now()
			refused := tokens < 1
			if !refused {
				tokens--
			}
			took := time.Duration(40+random.IntN(20)) * time.Millisecond
			mu.Unlock()
			time.Sleep(took)
			if refused {
				return testkit.Answer(429, "", "Retry-After", "1")(r)
			}
			return testkit.Answer(200, "")(r)
		}))
		const n = 5000
		began := time.Now()
		counts, end := count(t, client, refunds.Items("acct", numbered(n)), refunds.BulkOptions{})
		if took := time.Since(began); counts[refunds.OutcomeAccepted] != n || end != nil || took > n*200*time.Millisecond*4/3 {
			t.Errorf("%v after %v: %v", counts, took, end)
		}
	})
}
