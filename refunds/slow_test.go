package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// A slowService takes some time for each request. With places, it works on so many at once, and
// the others queue there until their callers leave.
type slowService struct {
	latency time.Duration
	spread  float64
	status  int // 0: 200
	odd     int // status of the fifth request; 0: as the others; 1: its connection breaks
	places  chan struct{}

	mu     sync.Mutex
	random *rand.Rand
	count  int
}

func (s *slowService) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	r.Body.Close()
	if s.places != nil {
		select {
		case s.places <- struct{}{}:
			defer func() { <-s.places }()
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	s.mu.Lock()
	if s.random == nil {
		s.random = rand.New(rand.NewPCG(1, 1))
	}
	took := time.Duration(float64(s.latency) * (1 - s.spread + 2*s.spread*s.random.Float64()))
	s.count++
	isOdd := s.odd > 0 && s.count == 5
	s.mu.Unlock()
	select {
	case <-time.After(took):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	status := 200
	switch {
	case isOdd && s.odd == 1:
		return nil, io.ErrUnexpectedEOF
	case isOdd:
		status = s.odd
	case s.status > 0:
		status = s.status
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2, Request: r}, nil
}

// becomes changes its latency.
func (s *slowService) becomes(latency time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = latency
}

// submits makes so many calls, one after each interval, and counts the outcomes.
func submits(client *refunds.Client, n int, interval, deadline time.Duration) map[refunds.Outcome]int {
	return submitsIn(func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), deadline)
	}, client, n, interval)
}

// submitsIn makes them in contexts of their own.
func submitsIn(own func() (context.Context, context.CancelFunc), client *refunds.Client, n int, interval time.Duration) map[refunds.Outcome]int {
	var mu sync.Mutex
	var calls sync.WaitGroup
	counts := map[refunds.Outcome]int{}
	for i := range n {
		calls.Go(func() {
			ctx, cancel := own()
			defer cancel()
			_, err := client.Submit(ctx, "acct-1", &refunds.Refund{RefundID: fmt.Sprint(i)})
			outcome := accepted
			if failed, ok := errors.AsType[*refunds.Error](err); ok {
				outcome = failed.Outcome
			}
			mu.Lock()
			defer mu.Unlock()
			counts[outcome]++
		})
		time.Sleep(interval)
	}
	calls.Wait()
	return counts
}

// However slow a service is, it accepts what it would accept without the client's window.
// internal/flow has more such services.
func TestSubmitAtSlowServices(t *testing.T) {
	for _, test := range []struct {
		latency            time.Duration
		spread             float64
		n                  int
		interval, deadline time.Duration
	}{
		{700 * time.Millisecond, 0.2, 3600, time.Second / 40, 1750 * time.Millisecond},
		{2 * time.Second, 0.3, 6000, time.Second / 50, 5 * time.Second},
		{4 * time.Second, 0.3, 600, time.Second / 5, 10 * time.Second},
		{20 * time.Millisecond, 0.5, 500, 0, 60 * time.Millisecond},
		{3 * time.Second, 0, 200, 0, 10 * time.Second},
		{8 * time.Second, 0, 500, 0, 24 * time.Second},
	} {
		if testing.Short() && test.n > 1000 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			client := clientOver(t, &slowService{latency: test.latency, spread: test.spread})
			for _, rest := range []time.Duration{0, 0, 5 * time.Minute} {
				time.Sleep(rest)
				if counts := submits(client, test.n, test.interval, test.deadline); counts[accepted] != test.n {
					t.Errorf("%+v: %v", test, counts)
				}
			}
		})
	}
}

// A service that stops for some seconds costs the calls of these seconds, and about as many after
// them, also if what it got has no response for much longer. 300 runs stayed below 0.7 of the bound.
// internal/flow has more such services.
func TestSubmitAfterTheServiceHasStopped(t *testing.T) {
	for _, c := range []struct {
		perSecond          time.Duration
		deadline, stopsFor time.Duration
	}{
		{5, 3 * time.Second, 3 * time.Second},
		{2, 10 * time.Second, 3 * time.Second},
		{2, 10 * time.Second, 10 * time.Second},
		{2, time.Minute, 10 * time.Second},
		{20, time.Minute, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &slowService{latency: time.Second}
			time.AfterFunc(30*time.Second, func() { s.becomes(time.Hour) })
			time.AfterFunc(30*time.Second+c.stopsFor, func() { s.becomes(time.Second) })
			counts := submits(clientOver(t, s), int(180*c.perSecond), time.Second/c.perSecond, c.deadline)
			if lost, most := counts[unknown]+counts[notSent], int(c.perSecond*(2*c.stopsFor+10*time.Second)/time.Second); lost > most {
				t.Errorf("%+v: %v, want %d lost at most", c, counts, most)
			} else {
				t.Logf("%+v: %v", c, counts)
			}
		})
	}
}

// Callers that have no deadline, and leave after ten seconds, say no more of the service than those
// that have one.
func TestSubmitForCallersThatLeave(t *testing.T) {
	leaves := func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(10*time.Second, cancel)
		return ctx, cancel
	}
	synctest.Test(t, func(t *testing.T) {
		s := &slowService{latency: time.Second}
		client := clientOver(t, s)
		most := func() {
			if counts := submitsIn(leaves, client, 300, time.Second/5); counts[accepted] < 280 {
				t.Error(counts)
			}
		}
		most()
		s.becomes(time.Hour)
		go submitsIn(leaves, client, 40, time.Second/5)
		time.Sleep(8 * time.Second)
		s.becomes(time.Second)
		most()
		time.Sleep(time.Minute)
	})
}

// A service that becomes many times slower at once is not used less for that for long, and what is
// not sent meanwhile is not unknown. internal/flow has more.
func TestSubmitAtASlowerService(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
	synctest.Test(t, func(t *testing.T) {
		s := &slowService{latency: 100 * time.Millisecond}
		client := clientOver(t, s)
		if counts := submits(client, 200, time.Second/10, 10*time.Second); counts[accepted] != 200 {
			t.Fatal(counts)
		}
		s.becomes(2 * time.Second)
		if counts := submits(client, 600, time.Second/10, 10*time.Second); counts[accepted]+counts[notSent] != 600 || counts[accepted] < 540 {
			t.Errorf("in the first minute: %v", counts)
		} else {
			t.Log(counts)
		}
		if counts := submits(client, 600, time.Second/10, 10*time.Second); counts[accepted] != 600 {
			t.Errorf("in the second minute: %v", counts)
		}
	})
}

// One failure in a quiet time costs one refund, however slow the service is. internal/flow has more.
func TestOneFailureAtASlowService(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
	for _, latency := range []time.Duration{20 * time.Millisecond, time.Second, 8 * time.Second} {
		for _, odd := range []int{1, 429, 499, 503} {
			synctest.Test(t, func(t *testing.T) {
				client := clientOver(t, &slowService{latency: latency, odd: odd}, refunds.WithMaxRetries(0))
				if counts := submits(client, 5, 10*time.Second, 30*time.Second); counts[accepted] != 4 {
					t.Fatal(counts)
				}
				if counts := submits(client, 300, time.Second/10, 30*time.Second); counts[accepted] != 300 {
					t.Errorf("%v, %d: %v", latency, odd, counts)
				}
			})
		}
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			asked := 0
			source := refunds.TokenFunc(func(context.Context) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				if asked++; asked == 5 {
					return "", errors.New("no token")
				}
				return "token", nil
			})
			client := clientOver(t, &slowService{latency: latency}, refunds.WithTokenSource(source))
			if counts := submits(client, 5, 10*time.Second, 30*time.Second); counts[accepted] != 4 {
				t.Fatal(counts)
			}
			if counts := submits(client, 300, time.Second/10, 30*time.Second); counts[accepted] != 300 {
				t.Errorf("%v, after the token source failed: %v", latency, counts)
			}
		})
	}
}

// A service that hangs soon after the start is found out, whatever the deadlines are: a few refunds
// are unknown, and the others are not sent.
func TestSubmitAtAServiceThatHangsSoon(t *testing.T) {
	for _, worked := range []int{0, 1, 3, 8, 12} {
		for _, deadline := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 10 * time.Second} {
			for _, interval := range []time.Duration{200 * time.Millisecond, time.Second} {
				synctest.Test(t, func(t *testing.T) {
					s := &slowService{latency: 50 * time.Millisecond}
					client := clientOver(t, s)
					submits(client, worked, 200*time.Millisecond, deadline)
					s.becomes(time.Hour)
					counts := submits(client, 600, interval, deadline)
					if counts[unknown] > 50 || counts[unknown]+counts[notSent] != 600 {
						t.Errorf("after %d that worked, deadline %v, one in %v: %v", worked, deadline, interval, counts)
					}
				})
			}
		}
	}
}

// What a service has to queue waits here, or is not sent.
func TestSubmitAtAQueue(t *testing.T) {
	for perSecond, possible := range map[int]int{8: 960, 10: 1200, 12: 1200, 20: 1200} {
		synctest.Test(t, func(t *testing.T) {
			client := clientOver(t, &slowService{latency: time.Second, places: make(chan struct{}, 10)})
			n := 120 * perSecond
			counts := submits(client, n, time.Second/time.Duration(perSecond), 6*time.Second)
			few, many := possible, 0
			if perSecond > 10 {
				few, many = possible*3/4, n*6/100
			}
			if counts[accepted] < few || counts[unknown] > many || counts[accepted]+counts[unknown]+counts[notSent] != n {
				t.Errorf("%d a second: %v", perSecond, counts)
			}
			t.Logf("%d a second: %v", perSecond, counts)
		})
	}
}

// What a process that starts in an outage leaves unknown within half a minute.
func TestSubmitStartsInAnOutage(t *testing.T) {
	for name, test := range map[string]struct {
		service *slowService
		most    int
	}{
		"it fails": {&slowService{latency: 50 * time.Millisecond, status: 503}, 16},
		"it hangs": {&slowService{latency: time.Hour}, 46},
	} {
		synctest.Test(t, func(t *testing.T) {
			counts := submits(clientOver(t, test.service), 1500, time.Second/50, 10*time.Second)
			if counts[unknown] > test.most || counts[unknown]+counts[notSent] != 1500 {
				t.Errorf("%s: %v", name, counts)
			}
			t.Logf("%s: %v", name, counts)
		})
	}
}

// A service that hangs after it has worked gets what the calls of a second need.
func TestSubmitStallsWithTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &slowService{latency: 50 * time.Millisecond}
		client := clientOver(t, service)
		if counts := submits(client, 1000, time.Second/100, 5*time.Second); counts[accepted] != 1000 {
			t.Fatal(counts)
		}
		service.mu.Lock()
		service.latency = time.Hour
		service.mu.Unlock()
		if counts := submits(client, 3000, time.Second/100, 5*time.Second); counts[unknown] > 120 {
			t.Errorf("%v", counts)
		} else {
			t.Logf("%v", counts)
		}
	})
}

// A call that has waited for its own limiter or token is not sent too late, and says what it
// waited for. Its deadline does not count against the service.
func TestSubmitHasWaitedTooLong(t *testing.T) {
	var wait atomic.Int64
	waits := func(ctx context.Context) error { return sleep(ctx, time.Duration(wait.Load())) }
	for name, option := range map[string]refunds.Option{
		"limiter": refunds.WithLimiter(limiterFunc(waits)),
		"token": refunds.WithTokenSource(refunds.TokenFunc(func(ctx context.Context) (string, error) {
			return "token", waits(ctx)
		})),
	} {
		synctest.Test(t, func(t *testing.T) {
			client := clientOver(t, &slowService{latency: 2 * time.Second}, option)
			wait.Store(0)
			if counts := submits(client, 20, time.Second, 5*time.Second); counts[accepted] != 20 {
				t.Fatal(counts)
			}
			wait.Store(int64(4 * time.Second))
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			receipt, err := client.Submit(ctx, "acct-1", record())
			failed := failed(t, receipt, err)
			if failed.Outcome != notSent || refunds.ActionOf(err) != resubmit || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no time is left for a response") || time.Since(began) >= 4*time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
			// A call that need not wait leaves, however little time it has.
			wait.Store(0)
			if counts := submits(client, 1, 0, 2100*time.Millisecond); counts[accepted] != 1 {
				t.Errorf("%s: %v", name, counts)
			}
			if counts := submits(client, 1, 0, time.Second); counts[unknown] != 1 {
				t.Errorf("%s: %v", name, counts)
			}
		})
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}
