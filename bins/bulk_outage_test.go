package bins_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
)

var errDown = errors.New("down")

// A service that takes only part of the load fails no card, and gets few requests in vain.
// internal/flow tests more such services.
func TestLookupAllAdapts(t *testing.T) {
	for name, test := range map[string]struct {
		refuse      func(s *service) int
		retryAfter  string
		concurrency int
		batches     int
		requests    float64       // for each batch, at most
		within      time.Duration // for all batches
		failed      int           // cards, at most: those that met a failure each time.
	}{
		"more than 3 in flight":         {atMost(3, 500), "", 64, 200, 2.5, 20 * time.Second, 0},
		"20 a second, with Retry-After": {perSecond(20), "1", 8, 200, 3.5, 2 * time.Minute, 0},
		"one server of two is broken":   {func(s *service) int { return []int{200, 500}[s.requests.Load()%2] }, "", 8, 100, 6, time.Minute, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: 30 * time.Millisecond, header: http.Header{"Retry-After": {test.retryAfter}}}
			s.refuse = func(string) int { return test.refuse(s) }
			r := runBulk(t, clientOver(t, s), test.batches*bins.MaxCards, bins.BulkOptions{Concurrency: test.concurrency})
			perBatch := float64(r.progress.Requests) / float64(test.batches)
			if r.end != nil || r.failed > test.failed || r.results+r.failed != r.taken || perBatch > test.requests || r.took > test.within {
				t.Errorf("%s: %+v", name, r)
			}
		})
	}
}

// An outage of a minute and a half fails no card, gets few requests, and is logged once. What the caller's own limiter
// or token source fails with is none: each slot asks again.
func TestLookupAllPausesInAnOutage(t *testing.T) {
	// What the caller's own limiter or token source fails with says nothing about the service.
	_, foreign := (&service{}).client(t, bins.WithLimiter(rate.NewLimiter(1, 0))).Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("411111")})
	own := []error{errDown, context.DeadlineExceeded, &net.DNSError{IsNotFound: true}, bins.ErrForbidden, foreign}
	respond := func(status int, body string) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
		}
	}
	tests := map[string]struct {
		response       func() (*http.Response, error)
		limiter, token error
	}{
		"503": {response: respond(503, "")}, "500": {response: respond(500, "")}, "429": {response: respond(429, "")},
		"no connection":   {response: func() (*http.Response, error) { return nil, errDown }},
		"a page":          {response: respond(200, "<html>")},
		"an error object": {response: respond(200, `{"error":{"code":"maintenance"}}`)},
		"half a response": {response: respond(200, `{"cards":[`)},
	}
	for _, err := range own {
		test := tests["503"]
		test.response, test.limiter = nil, err
		tests[fmt.Sprint("limiter: ", err)] = test
		test.limiter, test.token = nil, err
		tests[fmt.Sprint("token source: ", err)] = test
	}
	for name, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var met atomic.Int64
			isDown := func() bool {
				since := time.Since(began)
				if since < 300*time.Millisecond || since > 91*time.Second {
					return false
				}
				met.Add(1)
				time.Sleep(20 * time.Millisecond)
				return true
			}
			fails := func(err error) error {
				if err == nil || !isDown() {
					return nil
				}
				return fmt.Errorf("own: %w", err)
			}
			s := &service{latency: 200 * time.Millisecond}
			var log strings.Builder
			client := clientOver(t, transportFunc(func(r *http.Request) (*http.Response, error) {
				if test.response != nil && isDown() {
					return test.response()
				}
				return s.RoundTrip(r)
			}), bins.WithLimiter(limiterFunc(func(context.Context) error { return fails(test.limiter) })),
				bins.WithTokenSource(bins.TokenFunc(func(context.Context) (string, error) { return "k", fails(test.token) })),
				bins.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			r := runBulk(t, client, 1000, bins.BulkOptions{})
			outages, most := 1, int64(4*8+20)
			if test.response == nil {
				outages, most = 0, 500
			}
			if !r.isWhole(1000) || r.paused != (outages == 1) || met.Load() == 0 || met.Load() > most {
				t.Errorf("%s: %+v, %d requests in the outage, at most %d allowed", name, r, met.Load(), most)
			}
			if pauses, resumes := strings.Count(log.String(), "msg=pause"), strings.Count(log.String(), "msg=resume"); pauses != outages || resumes != outages {
				t.Errorf("%s: %d pauses and %d ends logged", name, pauses, resumes)
			}
		})
	}
}

// PausedUntil is when the next request leaves, also if the service asks for a longer wait.
func TestLookupAllIsPausedUntilItsNextProbe(t *testing.T) {
	for _, retryAfter := range []string{"", "7", "40"} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var probes, due atomic.Int64 // due in nanoseconds since then; 0: none
			s := &service{header: http.Header{"Retry-After": {retryAfter}}}
			s.refuse = func(string) int {
				if at := time.Duration(due.Load()); at != 0 {
					probes.Add(1)
					if late := time.Since(began) - at; late.Abs() > time.Millisecond {
						t.Errorf("Retry-After %q: a probe that was due at %v left %v later", retryAfter, at, late)
					}
				}
				if time.Since(began) < 5*time.Minute {
					return 503
				}
				return 0
			}
			o := bins.BulkOptions{Concurrency: 1, Progress: func(p bins.BulkProgress) {
				due.Store(0)
				if p.Paused() {
					due.Store(int64(p.PausedUntil.Sub(began)))
				}
			}}
			for result, err := range clientOver(t, s).LookupAll(t.Context(), numbered(60), o) {
				if err != nil || result.Err != nil {
					t.Errorf("Retry-After %q: %v, %v", retryAfter, err, result.Err)
				}
			}
			if n := probes.Load(); n < 3 {
				t.Errorf("Retry-After %q: %d probes", retryAfter, n)
			}
		})
	}
}

// What a limiter refuses was not sent, and fails no card, however often.
func TestLookupAllOutlastsItsLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		client := clientOver(t, &service{}, bins.WithLimiter(limiterFunc(func(context.Context) error {
			if n++; n%20 == 0 {
				return nil
			}
			return errDown
		})))
		if r := runBulk(t, client, 300, bins.BulkOptions{Concurrency: 1}); !r.isWhole(300) || r.progress.Requests != 6 {
			t.Errorf("%+v", r)
		}
	})
}

// A card that makes its requests fail has an error within a minute, at any place, and no other card has one. A service
// that is down fails none.
func TestLookupAllTellsABadCardFromAnOutage(t *testing.T) {
	poisoned := func(cards ...string) func(*service, time.Duration, string) int {
		return func(_ *service, _ time.Duration, body string) int {
			for _, card := range cards {
				if strings.Contains(body, card) {
					return 500
				}
			}
			return 0
		}
	}
	refused := func(status int, lasts time.Duration) func(*service, time.Duration, string) int {
		return func(_ *service, since time.Duration, body string) int {
			if since < lasts && strings.Contains(body, `"40000120"`) {
				return status
			}
			return 0
		}
	}
	outage := func(s *service, since time.Duration, _ string) int {
		if s.requests.Load() > 5 && since < 20*time.Minute {
			return 500
		}
		return 0
	}
	for name, test := range map[string]struct {
		fails   func(s *service, since time.Duration, body string) int
		cards   int
		failed  int
		within  time.Duration
		forever bool // it never gives up
	}{
		"the first card": {poisoned(`"40000000"`), 300, 1, time.Minute, false},
		"a card in between, and a lookup that never gives up": {poisoned(`"40000120"`), 300, 1, time.Minute, true},
		"the last card":                                            {poisoned(`"40000299"`), 300, 1, time.Minute, false},
		"one card in the last request":                             {poisoned(`"40000300"`), 301, 1, time.Minute, false},
		"three of the last":                                        {poisoned(`"40000299"`, `"40000240"`, `"40000160"`), 300, 3, time.Minute, false},
		"ten of the last":                                          {poisoned(`"4000029`), 300, 10, 5 * time.Minute, false},
		"an overload, which happens to meet one batch":             {refused(503, 10*time.Minute), 300, 0, 15 * time.Minute, false},
		"a limit, which happens to meet one batch":                 {refused(429, 10*time.Minute), 300, 0, 15 * time.Minute, false},
		"an overload for longer, and a lookup that never gives up": {refused(503, 40*time.Minute), 300, 0, time.Hour, true},
		"an outage before the end":                                 {outage, 300, 0, 25 * time.Minute, false},
		"an outage, and a bad card": {func(s *service, since time.Duration, body string) int {
			return max(outage(s, since, body), poisoned(`"40000120"`)(s, since, body))
		}, 300, 1, 25 * time.Minute, false},
	} {
		for _, concurrency := range []int{1, 3, 8} {
			t.Run(fmt.Sprint(name, " ", concurrency, " at a time"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began, s := time.Now(), &service{latency: 20 * time.Millisecond}
					s.refuse = func(body string) int { return test.fails(s, time.Since(began), body) }
					o := bins.BulkOptions{Concurrency: concurrency}
					if test.forever {
						o.GiveUpAfter = -1
					}
					r := runBulk(t, clientOver(t, s), test.cards, o)
					if r.end != nil || r.failed != test.failed || r.results != test.cards-test.failed || r.took > test.within {
						t.Errorf("%+v", r)
					}
				})
			})
		}
	}
}

// A bad card does not prolong an outage, wherever that begins: its request is not the only probe. If its request is the
// last, and is in pieces when the outage begins, some of these fail with it.
func TestLookupAllProbesWithMoreThanABadCard(t *testing.T) {
	for _, outage := range []int{500, 429} {
		for _, cards := range []int{150, 1000} {
			for first := int64(0); first < 30; first += 7 {
				t.Run(fmt.Sprint(outage, " after ", first, " requests ", cards, " cards"), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						began, s := time.Now(), &service{latency: 20 * time.Millisecond}
						s.refuse = func(body string) int {
							switch {
							case s.requests.Load() > first && time.Since(began) < 20*time.Minute:
								return outage
							case strings.Contains(body, `"40000120"`):
								return 500
							}
							return 0
						}
						r := runBulk(t, clientOver(t, s), cards, bins.BulkOptions{Concurrency: 1})
						most := 1
						if cards == 150 {
							most = 25
						}
						if r.end != nil || r.failed < 1 || r.failed > most || r.results != cards-r.failed || r.took > 25*time.Minute {
							t.Errorf("%+v", r)
						}
					})
				})
			}
		}
	}
}

// A bad card is given up after few requests, even if the limiter refuses the next request each time.
func TestLookupAllGivesUpABadCardSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bad atomic.Int64
		var refuse atomic.Bool
		s := &service{refuse: func(body string) int {
			if !strings.Contains(body, `"40000120"`) {
				return 0
			}
			bad.Add(1)
			refuse.Store(true)
			return 500
		}}
		client := clientOver(t, s, bins.WithLimiter(limiterFunc(func(context.Context) error {
			if refuse.CompareAndSwap(true, false) {
				return errDown
			}
			return nil
		})))
		if r := runBulk(t, client, 1000, bins.BulkOptions{Concurrency: 1}); r.end != nil || r.failed != 1 || bad.Load() > 15 {
			t.Errorf("sent %d times: %+v", bad.Load(), r)
		}
	})
}

// A batch that failed is sent again as soon as others succeed, and delays the results behind
// it no longer.
func TestLookupAllRepeatsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{
			latency: 10 * time.Millisecond,
			fail:    func(n int64) int { return map[int64]int{1: http.StatusServiceUnavailable}[n] },
		}
		began := time.Now()
		for r, err := range s.client(t).LookupAll(t.Context(), numbered(20_000), bins.BulkOptions{Concurrency: 2}) {
			if took := time.Since(began); err != nil || r.Err != nil || took > 50*time.Millisecond {
				t.Fatalf("result %d after %v, %v", r.Index, took, err)
			}
			if r.Index == 2*bins.MaxCards { // either of the first two requests may have failed
				break
			}
		}
	})
}

// The lookup does not wait for ever for a token source or a limiter that hangs: it goes on when that works again, and
// gives up in the end.
func TestLookupAllNeverStandsStill(t *testing.T) {
	for _, what := range []string{"token", "cached token", "limiter"} {
		for _, recovers := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				began, s := time.Now(), &service{latency: 300 * time.Millisecond}
				hang := func(ctx context.Context, is string) error {
					since := time.Since(began)
					if is == what && since > time.Second/2 && (since < 5*time.Minute || !recovers) {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}
				var source bins.TokenSource = bins.TokenFunc(func(ctx context.Context) (string, error) { return "k", hang(ctx, "token") })
				if what == "cached token" {
					source = bins.CachedToken(func(ctx context.Context) (string, time.Time, error) {
						return "k", time.Now().Add(time.Second), hang(ctx, what)
					})
				}
				limiter := limiterFunc(func(ctx context.Context) error { return hang(ctx, "limiter") })
				client := clientOver(t, s, bins.WithTokenSource(source), bins.WithLimiter(limiter))
				r := runBulk(t, client, 2500, bins.BulkOptions{GiveUpAfter: 20 * time.Minute})
				switch {
				case recovers && (!r.isWhole(2500) || r.took > 15*time.Minute):
					t.Errorf("%s: %+v", what, r)
				case !recovers && (!errors.Is(r.end, bins.ErrSuspended) || r.took > 25*time.Minute):
					t.Errorf("%s for ever: %+v", what, r)
				}
				time.Sleep(time.Hour) // for what was left behind
			})
		}
	}
}
