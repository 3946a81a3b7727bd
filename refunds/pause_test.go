package refunds_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
	"golang.org/x/time/rate"
)

// In a pause, a Submit that is the probe sends one request: its retries wait for the next probe
// like all others.
func TestProbeIsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{status: func(string) int { return http.StatusTooManyRequests }}
		client := s.client(t, refunds.WithMaxRetries(3))
		pause(t, client)
		probes := 0
		for range 10 * 60 {
			before := len(s.sent())
			_, err := client.Submit(t.Context(), "acct-1", record())
			switch n := len(s.sent()) - before; {
			case !errors.Is(err, refunds.ErrSuspended):
				t.Errorf("%d requests: %v", n, err)
			case n > 1:
				t.Errorf("one Submit sent %d requests in the pause", n)
			default:
				probes += n
			}
			time.Sleep(100 * time.Millisecond)
		}
		if probes < 4 || probes > 7 {
			t.Errorf("%d probes in a minute", probes)
		}
	})
}

// A function of the caller that panics before the record is sent says nothing of the service: it
// ends no pause.
func TestPanicBeforeSendingEndsNoPause(t *testing.T) {
	fail := func(context.Context) error { panic("on purpose") }
	token := func(ctx context.Context) (string, error) { return "", fail(ctx) }
	for name, option := range map[string]refunds.CallOption{
		"BeforeSend":   refunds.WithBeforeSend(fail),
		"limiter":      refunds.WithLimiter(limiterFunc(fail)),
		"token source": refunds.WithTokenSource(refunds.TokenFunc(token)),
	} {
		for _, bulk := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := &service{status: func(string) int { return http.StatusServiceUnavailable }}
				client := s.client(t)
				pause(t, client)
				time.Sleep(time.Minute) // the probe is due
				sent := len(s.sent())
				func() {
					defer func() {
						if recover() == nil {
							t.Errorf("%s: no panic", name)
						}
					}()
					if bulk {
						count(t, client, with(numbered(1), "", option), refunds.BulkOptions{})
					} else {
						client.Submit(t.Context(), "acct-1", record(), option)
					}
				}()
				_, _ = client.Submit(t.Context(), "acct-1", record()) // the probe
				_, err := client.Submit(t.Context(), "acct-1", record())
				if n := len(s.sent()) - sent; n > 1 || !errors.Is(err, refunds.ErrSuspended) {
					t.Errorf("%s, bulk %t: %d requests after the panic: %v", name, bulk, n, err)
				}
			})
		}
	}
}

// After an outage, a call that never comes to send its request keeps no other from being the probe.
func TestOneCallThatHangsIsNoProbe(t *testing.T) {
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	token := func(ctx context.Context) (string, error) { return "", hangs(ctx) }
	for name, option := range map[string]refunds.CallOption{
		"BeforeSend hangs":   refunds.WithBeforeSend(hangs),
		"limiter hangs":      refunds.WithLimiter(limiterFunc(hangs)),
		"token source hangs": refunds.WithTokenSource(refunds.TokenFunc(token)),
		"BeforeSend fails":   refunds.WithBeforeSend(refusal(errors.New("no row"))),
	} {
		synctest.Test(t, func(t *testing.T) {
			status := http.StatusServiceUnavailable
			s := &service{status: func(string) int { return status }}
			client := s.client(t)
			pause(t, client)
			s.change(func() { status = http.StatusOK })
			time.Sleep(time.Minute) // the probe is due
			ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
			defer cancel()
			go client.Submit(ctx, "acct-1", record(), option)
			synctest.Wait()
			began := time.Now()
			for time.Since(began) < time.Minute {
				if _, err := client.Submit(t.Context(), "acct-1", record()); err == nil {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%s: nothing is accepted for %v", name, took)
			}
		})
	}
}

// A probe that is not sent gives its place back once: after the outage, no more requests are in flight
// than without it.
func TestFailedProbesFreeOnePlace(t *testing.T) {
	var most [2]int // in flight
	for fails := range most {
		synctest.Test(t, func(t *testing.T) {
			status := http.StatusServiceUnavailable
			s := &service{latency: func(string) time.Duration { return time.Second }, status: func(string) int { return status }}
			client := s.client(t)
			pause(t, client)
			for range 8 * fails {
				time.Sleep(3 * time.Minute) // a probe is due
				if _, err := client.Submit(t.Context(), "acct-1", record(), refunds.WithBeforeSend(refusal(errors.New("no row")))); errors.Is(err, refunds.ErrSuspended) {
					t.Error(err)
				}
			}
			time.Sleep(3 * time.Minute)
			s.change(func() { status = http.StatusOK })
			if _, err := client.Submit(t.Context(), "acct-1", record()); err != nil {
				t.Fatal(err)
			}
			before := len(s.sent())
			if counts := submits(client, 40, 0, time.Minute); counts[accepted] != 40 {
				t.Error(counts)
			}
			first := s.sent()[before].at
			for _, a := range s.sent()[before:] {
				if a.at < first+time.Second {
					most[fails]++
				}
			}
		})
	}
	if most[0] != most[1] {
		t.Errorf("%d in flight, and %d after probes that were not sent", most[0], most[1])
	}
}

// After an outage, calls are accepted again although their BeforeSend takes longer than a probe may
// keep its place: one that is ready to leave goes before those that only enter.
func TestSlowBeforeSendAfterAnOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func(string) time.Duration { return 100 * time.Millisecond }, status: downBetween(time.Minute, 2*time.Minute)}
		client := s.client(t, refunds.WithBeforeSend(func(ctx context.Context) error {
			return sleep(ctx, 1100*time.Millisecond+rand.N(500*time.Millisecond))
		}))
		if counts := submits(client, 1440, 501*time.Millisecond, 30*time.Second); counts[accepted] < 800 { // of 1,320; at least 1,113 in 40 runs
			t.Errorf("beside an outage of a minute in twelve: %v", counts)
		} else {
			t.Log(counts)
		}
	})
}

// After an outage of three seconds, calls that wait for a moment are not refused for long, although
// they have little more time than a response takes.
func TestShortDeadlinesAfterAnOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func(string) time.Duration { return 500 * time.Millisecond }, status: downBetween(30*time.Second, 33*time.Second)}
		client := s.client(t, refunds.WithBeforeSend(func(ctx context.Context) error { return sleep(ctx, 100*time.Millisecond) }))
		if counts := submits(client, 1500, 200*time.Millisecond, 1500*time.Millisecond); counts[accepted] < 1300 {
			t.Errorf("beside an outage of three seconds: %v", counts)
		} else {
			t.Log(counts)
		}
	})
}

// A service that hangs for a while is not flooded afterwards by the calls that waited for their turn
// at the client's rate limit.
func TestRateLimitHoldsAfterAPause(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
	synctest.Test(t, func(t *testing.T) {
		const perSecond, hangs, works = 20, 10 * time.Second, 40 * time.Second
		began := time.Now()
		s := &service{latency: func(string) time.Duration {
			if at := time.Since(began); hangs < at && at < works {
				return works - at
			}
			return 200 * time.Millisecond
		}}
		submits(s.client(t, refunds.WithRateLimit(perSecond, 1)), 60*50, time.Second/50, time.Minute)
		sent := s.sent()
		for i, first := range sent {
			n := 0
			for n = i; n < len(sent) && sent[n].at < first.at+time.Second; n++ {
			}
			if n-i > perSecond+1 {
				t.Fatalf("%d requests in the second after %v", n-i, first.at)
			}
		}
	})
}

// A burst of failures is no outage: the next burst waits for places instead.
func TestBurstsAtALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 50
		inFlight := 0
		var mu sync.Mutex
		client := clientOver(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			inFlight++
			refused := inFlight > places
			mu.Unlock()
			time.Sleep(400*time.Millisecond + rand.N(200*time.Millisecond))
			mu.Lock()
			defer mu.Unlock()
			if inFlight--; refused {
				return testkit.Answer(http.StatusServiceUnavailable, "")(r)
			}
			return testkit.Answer(http.StatusOK, "{}")(r)
		}))
		submits(client, 20, time.Second, 30*time.Second)
		for i := range 4 {
			time.Sleep(time.Minute)
			counts := submits(client, 60, 0, 30*time.Second)
			if counts[accepted]+counts[unknown] != 60 || counts[unknown] > 10 || i > 0 && counts[unknown] > 1 {
				t.Errorf("burst %d: %v", i, counts)
			}
		}
	})
}

// downBetween is the status of a service that fails for a time, from now on.
func downBetween(from, to time.Duration) func(string) int {
	began := time.Now()
	return func(string) int {
		if at := time.Since(began); from < at && at < to {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	}
}

// pause submits until the client pauses.
func pause(t *testing.T, client *refunds.Client) {
	t.Helper()
	for range 10 {
		if _, err := client.Submit(t.Context(), "acct-1", record()); errors.Is(err, refunds.ErrSuspended) {
			return
		}
	}
	t.Fatal("no pause")
}

// What was not sent says nothing of the service: calls whose deadline comes before the end of a
// Retry-After, or before their turn at a limiter, begin no pause and prolong none.
func TestUnsentSubmitsBeginNoPause(t *testing.T) {
	submitFor := func(t *testing.T, client *refunds.Client, left time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), left)
		defer cancel()
		_, err := client.Submit(ctx, "acct-1", record())
		return err
	}
	t.Run("Retry-After", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			fake := refundstest.NewServer(t)
			client := fake.Client()
			if err := submitFor(t, client, time.Minute); err != nil {
				t.Fatal(err)
			}
			fake.Script(refundstest.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Minute})
			end := time.Now().Add(time.Minute)
			for time.Until(end) > 0 {
				err := submitFor(t, client, 5*time.Second)
				failed, ok := errors.AsType[*refunds.Error](err)
				if left := time.Until(end); ok && left > 5*time.Second && (!errors.Is(err, refunds.ErrRateLimited) || failed.RetryAfter < left-time.Second) {
					t.Fatalf("%v before the end: wait for %v: %v", left, failed.RetryAfter, err)
				}
				time.Sleep(500 * time.Millisecond)
			}
			if err := submitFor(t, client, 5*time.Second); err != nil {
				t.Errorf("after the end: %v", err)
			}
		})
	})
	for name, limiter := range map[string]func() refunds.CallOption{
		"a rate limit":         func() refunds.CallOption { return refunds.WithRateLimit(10, 1) },
		"a limiter that fails": func() refunds.CallOption { return refunds.WithLimiter(limiterFunc(rate.NewLimiter(10, 1).Wait)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := refundstest.NewServer(t).Client(limiter())
				var calls sync.WaitGroup
				var sent atomic.Int32
				for range 200 {
					calls.Go(func() {
						if err := submitFor(t, client, 5*time.Second); err == nil {
							sent.Add(1)
						} else if !errors.Is(err, refunds.ErrNotSent) || errors.Is(err, refunds.ErrSuspended) {
							t.Error(err)
						}
					})
				}
				if calls.Wait(); sent.Load() < 45 {
					t.Errorf("%d of 50 were sent", sent.Load())
				}
				for range 20 {
					time.Sleep(200 * time.Millisecond)
					if err := submitFor(t, client, 5*time.Second); err != nil {
						t.Errorf("after the burst: %v", err)
					}
				}
			})
		})
	}
}

// Calls that fail by their own code or deadline do not hold up the others, however many they are.
func TestOthersAreNotHeldUp(t *testing.T) {
	errDown := errors.New("down")
	for name, odd := range map[string]struct {
		within time.Duration
		option refunds.CallOption
	}{
		"a deadline shorter than any response": {100 * time.Millisecond, nil},
		"a token source of the call":           {time.Minute, refunds.WithTokenSource(refunds.TokenFunc(func(context.Context) (string, error) { return "", errDown }))},
		"a token source that does not return":  {5 * time.Second, refunds.WithTokenSource(refunds.TokenFunc(func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }))},
		"a limiter of the call":                {time.Minute, refunds.WithLimiter(refusal(errDown))},
		"begun before":                         {time.Minute, refunds.WithBeforeSend(func(context.Context) error { return errDown })},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := clientOver(t, &slowService{latency: time.Second, spread: 0.2})
				for i := range 200 {
					within, opts := time.Minute, []refunds.CallOption(nil)
					if i%20 > 0 && i > 20 {
						if within = odd.within; odd.option != nil {
							opts = append(opts, odd.option)
						}
					}
					ctx, cancel := context.WithTimeout(t.Context(), within)
					_, err := client.Submit(ctx, "acct-1", record(), opts...)
					if cancel(); errors.Is(err, refunds.ErrSuspended) || opts == nil && within == time.Minute && err != nil {
						t.Fatalf("call %d: %v", i, err)
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}
