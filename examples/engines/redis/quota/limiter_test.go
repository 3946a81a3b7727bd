package quota_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
	"github.com/carddata/carddata-go/examples/engines/redis/internal/redisserver"
	"github.com/carddata/carddata-go/examples/engines/redis/quota"
	"github.com/carddata/carddata-go/internal/proof/testkit/program"
)

func newLimiter(t *testing.T, s *redisserver.Server, limit int, period time.Duration, burst int) *quota.Limiter {
	t.Helper()
	client := s.Connect()
	t.Cleanup(func() { client.Close() })
	l, err := quota.New(client, "test", limit, period, burst)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestReplicasShareTheLimit has three limiters with many callers, and kills Redis in
// between. All requests together stay within the limit, with a burst for each start of
// Redis.
func TestReplicasShareTheLimit(t *testing.T) {
	const limit, burst = 200, 2
	s := redisserver.ForTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	var allowed, failed atomic.Int64
	var running sync.WaitGroup
	began := time.Now()
	for range 3 {
		l := newLimiter(t, s, limit, time.Second, burst)
		for range 10 {
			running.Go(func() {
				for ctx.Err() == nil {
					if l.Wait(ctx) == nil {
						allowed.Add(1)
					} else {
						failed.Add(1)
					}
				}
			})
		}
	}
	program.WaitFor(t, func() bool { return allowed.Load() >= 50 })
	s.Kill()
	before := failed.Load()
	program.WaitFor(t, func() bool { return failed.Load() > before })
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	before = allowed.Load()
	program.WaitFor(t, func() bool { return allowed.Load() >= before+50 })
	cancel()
	running.Wait()
	if n, most := allowed.Load(), 2*burst+limit*time.Since(began).Seconds(); float64(n) > most {
		t.Errorf("%d requests were allowed, want at most %.0f", n, most)
	}
}

func TestDeadline(t *testing.T) {
	l := newLimiter(t, redisserver.ForTest(t), 1, time.Hour, 1)
	if err := l.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if err := l.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("%v, after the deadline: %v", err, ctx.Err())
	}
	// One caller waits for Redis, and the others in line. All end with their context.
	ctx, cancel = context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() {
			if err := l.Wait(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	cancel()
	running.Wait()
}

// TestWithoutRedis uses the limiter in a client. Without Redis, nothing is sent.
func TestWithoutRedis(t *testing.T) {
	s := redisserver.ForTest(t)
	fake := binstest.NewServer(t)
	client := fake.Client(bins.WithLimiter(newLimiter(t, s, 1, time.Hour, 1)))
	request := &bins.LookupRequest{Cards: bins.Cards("411111")}
	if _, err := client.Lookup(t.Context(), request); err != nil {
		t.Error(err)
	}
	s.Kill()
	if _, err := client.Lookup(t.Context(), request); !errors.Is(err, bins.ErrLocalLimit) {
		t.Errorf("without Redis: %v", err)
	}
	if n := len(fake.Requests()); n != 1 {
		t.Errorf("%d requests were sent, want 1", n)
	}
}

func TestNew(t *testing.T) {
	client := (&redisserver.Server{}).Connect()
	defer client.Close()
	for _, test := range []struct {
		name         string
		limit, burst int
		good         bool
	}{{"a", 1, 1, true}, {"", 1, 1, false}, {"a", 0, 1, false}, {"a", 1, 0, false}} {
		if _, err := quota.New(client, test.name, test.limit, time.Second, test.burst); (err == nil) != test.good {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
