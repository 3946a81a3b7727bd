package bins_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
)

var errDown = errors.New("down")

// An outage of a minute and a half fails no card, and is met by few requests.
func TestLookupAllPausesInAnOutage(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
	}{
		"503": {503, ""}, "500": {500, ""}, "429": {429, ""}, "no connection": {},
		"a page": {200, "<html>"}, "an error object": {200, `{"error":{"code":"maintenance"}}`}, "the half": {200, `{"cards":[`},
	} {
		pausesInAnOutage(t, name, func(s *service, down func() bool) *bins.Client {
			return clientOver(t, transportFunc(func(r *http.Request) (*http.Response, error) {
				if !down() {
					return s.RoundTrip(r)
				}
				if time.Sleep(20 * time.Millisecond); test.status == 0 {
					return nil, errDown
				}
				return &http.Response{StatusCode: test.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(test.body))}, nil
			}), bins.StaticToken("k"))
		})
	}
	// What the caller's own limiter or token source fails with says nothing of the service.
	_, foreign := (&service{}).client(t, bins.WithLimiter(rate.NewLimiter(1, 0))).Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("411111")})
	for _, failure := range []error{errDown, context.DeadlineExceeded, &net.DNSError{IsNotFound: true}, bins.ErrForbidden, foreign} {
		fails := func(down func() bool) error {
			if !down() {
				return nil
			}
			time.Sleep(20 * time.Millisecond)
			return fmt.Errorf("own: %w", failure)
		}
		pausesInAnOutage(t, "limiter", func(s *service, down func() bool) *bins.Client {
			return clientOver(t, s, bins.StaticToken("k"), bins.WithLimiter(limiterFunc(func() error { return fails(down) })))
		})
		pausesInAnOutage(t, "token source", func(s *service, down func() bool) *bins.Client {
			return clientOver(t, s, bins.TokenFunc(func(context.Context) (string, error) { return "k", fails(down) }))
		})
	}
}

// What a limiter refuses was not sent, and fails no card, however often and however few
// they are.
func TestLookupAllOutlastsItsLimiter(t *testing.T) {
	for name, refuses := range map[string]func(n int64, since time.Duration) bool{
		"every second":    func(n int64, _ time.Duration) bool { return n%2 == 0 },
		"for ten minutes": func(_ int64, since time.Duration) bool { return since < 10*time.Minute },
	} {
		for _, cards := range []int{60, 5000} {
			synctest.Test(t, func(t *testing.T) {
				began, n, results := time.Now(), atomic.Int64{}, 0
				limiter := limiterFunc(func() error {
					if refuses(n.Add(1), time.Since(began)) {
						return errDown
					}
					return nil
				})
				for r, err := range (&service{}).client(t, bins.WithLimiter(limiter)).LookupAll(t.Context(), numbered(cards), bins.BulkOptions{Concurrency: 1}) {
					if err != nil {
						t.Fatalf("%s, %d: %v", name, r.Index, err)
					}
					results++
				}
				if results != cards {
					t.Errorf("%s: %d results of %d", name, results, cards)
				}
			})
		}
	}
}

// A batch that fails for what it holds is given up after eight requests, also where the
// limiter refuses each retry.
func TestLookupAllGivesUpABatchThatIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, bad, refuse := &service{}, 0, false
		client := clientOver(t, transportFunc(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil || !strings.Contains(string(body), `"40000120"`) {
				r.Body = io.NopCloser(bytes.NewReader(body))
				return s.RoundTrip(r)
			}
			bad++
			refuse = true
			return &http.Response{StatusCode: 500, Header: http.Header{}, Body: http.NoBody}, nil
		}), bins.StaticToken("k"), bins.WithLimiter(limiterFunc(func() error {
			if !refuse {
				return nil
			}
			refuse = false
			return errDown
		})))
		failed := 0
		for r, err := range client.LookupAll(t.Context(), numbered(20_000), bins.BulkOptions{Concurrency: 1}) {
			if r.Index < 0 {
				t.Fatal(err)
			} else if err != nil {
				failed++
			}
		}
		if bad != 8 || failed != bins.MaxCards {
			t.Errorf("sent %d times, %d cards failed", bad, failed)
		}
	})
}

// What no wait mends ends the lookup at once, in the middle as well.
func TestLookupAllEndsAtAWrongSetting(t *testing.T) {
	var asked atomic.Int64
	for want, client := range map[error]*bins.Client{
		bins.ErrCredential: clientOver(t, &service{}, bins.TokenFunc(func(context.Context) (string, error) {
			if asked.Add(1) > 2 {
				return "bad\ntoken", nil
			}
			return "k", nil
		})),
		bins.ErrLocalLimit: (&service{}).client(t, bins.WithLimiter(rate.NewLimiter(10, 0))),
	} {
		synctest.Test(t, func(t *testing.T) {
			began, last := time.Now(), error(nil)
			for r, err := range client.LookupAll(t.Context(), numbered(1000), bins.BulkOptions{Concurrency: 1}) {
				if err != nil && r.Index >= 0 {
					t.Fatalf("%d: %v", r.Index, err)
				}
				last = err
			}
			if took := time.Since(began); !errors.Is(last, want) || took > time.Second {
				t.Errorf("%v after %v, want %v", last, took, want)
			}
		})
	}
}

type limiterFunc func() error

func (f limiterFunc) Wait(context.Context) error { return f() }

func clientOver(t *testing.T, network http.RoundTripper, source bins.TokenSource, opts ...bins.Option) *bins.Client {
	client, err := bins.NewClient("https://bin.example", source, append(opts, bins.WithHTTPClient(&http.Client{Transport: network}))...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func pausesInAnOutage(t *testing.T, name string, newClient func(s *service, down func() bool) *bins.Client) {
	for _, unordered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var met atomic.Int64
			client := newClient(&service{latency: func() time.Duration { return 100 * time.Millisecond }}, func() bool {
				since := time.Since(began)
				down := since >= time.Second && since <= 91*time.Second
				if down {
					met.Add(1)
				}
				return down
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			results, paused := 0, false
			progress := func(p bins.BulkProgress) { paused = paused || p.Paused }
			for r, err := range client.LookupAll(ctx, numbered(8_000), bins.BulkOptions{Unordered: unordered, Progress: progress}) {
				if err != nil || r.Result.Data.Card.CardBrand != "of "+r.Input.Reveal() {
					t.Fatalf("%s: %v, %v", name, r, err)
				}
				results++
			}
			if most := int64(4*8 + 20); results != 8_000 || met.Load() == 0 || met.Load() > most || !paused {
				t.Errorf("%s: %d results, %d requests in the outage, at most %d allowed, paused %v", name, results, met.Load(), most, paused)
			}
		})
	}
}

// A deadline that the limit leaves no time for ends the lookup, and fails no card.
func TestLookupAllEndsOutOfTime(t *testing.T) {
	for name, limit := range map[string]bins.Option{"rate": bins.WithRateLimit(1, 1), "adaptive": bins.WithAdaptiveRate(bins.AdaptiveRate{Start: 1, Max: 1})} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
			defer cancel()
			s, results := &service{}, 0
			var end error
			for r, err := range s.client(t, limit).LookupAll(ctx, numbered(10_000), bins.BulkOptions{}) {
				switch {
				case r.Index < 0:
					end = err
				case err != nil:
					t.Fatalf("%s, %d: %v", name, r.Index, err)
				default:
					results++
				}
			}
			if !errors.Is(end, bins.ErrLocalLimit) || !errors.Is(end, context.DeadlineExceeded) || results < 400 {
				t.Errorf("%s: ended with %v after %d results", name, end, results)
			}
		})
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// After GiveUpAfter the rest is told as not asked for, but for what is known.
func TestLookupAllGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := atomic.Bool{}
		s := &service{fail: func(int64) int {
			if down.Load() {
				return http.StatusServiceUnavailable
			}
			return 0
		}}
		memory := bins.NewMemoryCache(bins.CacheOptions{TTL: time.Hour, StaleFor: 24 * time.Hour})
		o := bins.BulkOptions{GiveUpAfter: 10 * time.Minute, Memory: memory}
		for range s.client(t).LookupAll(t.Context(), numbered(100), o) {
		}
		time.Sleep(2 * time.Hour)
		down.Store(true)
		began, suspended, stale := time.Now(), 0, 0
		for r, err := range s.client(t).LookupAll(t.Context(), numbered(5000), o) {
			switch {
			case errors.Is(err, bins.ErrSuspended) && errors.Is(err, bins.ErrServer) && r.Index >= 100:
				suspended++
			case err == nil && r.Result.Stale && r.Index < 100:
				stale++
			default:
				t.Fatalf("%d: %v, %v", r.Index, r, err)
			}
		}
		if took := time.Since(began); suspended != 4900 || stale != 100 || took < 10*time.Minute || took > 11*time.Minute {
			t.Errorf("%d suspended and %d stale after %v", suspended, stale, took)
		}
	})
}

// A request that the service cannot bear fails its cards and holds up no others.
func TestLookupAllIsNotHeldUpByOneBatch(t *testing.T) {
	for _, concurrency := range []int{1, 8} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{}
			poisoned := transportFunc(func(r *http.Request) (*http.Response, error) {
				body, _ := r.GetBody()
				text := make([]byte, 200)
				n, _ := body.Read(text)
				if strings.Contains(string(text[:n]), `"40000100"`) {
					return &http.Response{StatusCode: 500, Header: http.Header{}, Body: http.NoBody}, nil
				}
				return s.RoundTrip(r)
			})
			client := clientOver(t, poisoned, bins.StaticToken("k"))
			began, failed := time.Now(), 0
			for _, err := range client.LookupAll(t.Context(), numbered(2000), bins.BulkOptions{Concurrency: concurrency}) {
				if err != nil {
					failed++
				}
			}
			if took := time.Since(began); failed != bins.MaxCards || took > 5*time.Minute {
				t.Errorf("%d cards failed after %v", failed, took)
			}
		})
	}
}

// With ReadAhead, results do not wait for the next input, and what is no full batch
// leaves after a while.
func TestLookupAllReadsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := make(chan string)
		results := make(chan string)
		go func() {
			defer close(results)
			for r, err := range (&service{}).client(t).LookupAll(t.Context(), func(yield func(string) bool) {
				for card := range queue {
					if !yield(card) {
						return
					}
				}
			}, bins.BulkOptions{ReadAhead: true}) {
				if err != nil {
					t.Error(err)
				}
				results <- r.Result.Data.Card.CardBrand
			}
		}()
		for i := range 3 {
			card := fmt.Sprintf("41111%d", i)
			began := time.Now()
			queue <- card
			if got := <-results; got != "of "+card || time.Since(began) != 10*time.Millisecond {
				t.Errorf("%s after %v", got, time.Since(began))
			}
		}
		close(queue)
		if got, ok := <-results; ok {
			t.Errorf("a result too many: %s", got)
		}
	})
}

// With ReadAhead, a loop whose input blocks ends with the context, and a panic of the
// input, or the end of its goroutine, reaches the loop.
func TestLookupAllReadingAheadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		blocked := func(yield func(string) bool) {
			yield("411111")
			<-ctx.Done()
		}
		client := (&service{}).client(t)
		var end error
		for r, err := range client.LookupAll(ctx, blocked, bins.BulkOptions{ReadAhead: true}) {
			if r.Index < 0 {
				end = err
			}
		}
		if !errors.Is(end, context.DeadlineExceeded) {
			t.Errorf("ended by %v", end)
		}
		synctest.Wait()
		for name, end := range map[string]func(){"input": func() { panic("input") }, "exit": runtime.Goexit} {
			func() {
				defer func() {
					if recovered := recover(); recovered == nil || name == "input" && recovered != name {
						t.Errorf("%s: recovered %v", name, recovered)
					}
				}()
				for range client.LookupAll(t.Context(), func(func(string) bool) { end() }, bins.BulkOptions{ReadAhead: true}) {
				}
			}()
		}
	})
}
