package quota_test

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
	"github.com/carddata/carddata-go/examples/fleet/internal/redistest"
	"github.com/carddata/carddata-go/examples/fleet/quota"
)

// primed returns a quota whose first second is over.
func primed(t *testing.T, limit rate.Limit, burst int) *quota.Limiter {
	t.Helper()
	l, err := quota.New(redistest.Connect(t, redistest.Start(t)), "test", limit, burst)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestReplicasShareTheLimit(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	began := time.Now()
	f := startFleet(t, s, 200, 2)
	time.Sleep(2500 * time.Millisecond)
	ended := time.Now()
	waits := f.finish(t)
	if early, leaves := count(waits, time.Time{}, began.Add(time.Second)); leaves > 0 {
		t.Errorf("%d of %d leaves in the first second of a new quota", leaves, early)
	}
	// Half of it, so that a slow machine is no failure.
	if _, leaves := count(waits, began.Add(time.Second), ended); leaves < 150 {
		t.Errorf("%d leaves in 1.5 s, want about 300", leaves)
	}
	stats, err := redistest.Connect(t, s).Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`).FindStringSubmatch(stats)
	if calls == nil {
		t.Fatal(stats)
	}
	if n, _ := strconv.Atoi(calls[1]); n > len(waits)*11/10 {
		t.Errorf("%d calls for %d waits", n, len(waits))
	}
}

func TestBurst(t *testing.T) {
	t.Parallel()
	l := primed(t, 2, 3)
	time.Sleep(1700 * time.Millisecond) // for the credit of three
	began := time.Now()
	for range 3 {
		if err := l.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	burst := time.Since(began)
	if err := l.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next := time.Since(began); burst > 300*time.Millisecond || next < 300*time.Millisecond {
		t.Errorf("three leaves took %s, and the fourth came after %s", burst, next)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	l := primed(t, 1, 1)
	// A queue beyond the deadline is refused at once, and no slot is taken: however
	// often, it grows no longer.
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		began := time.Now()
		err := l.Wait(ctx)
		refusal, ok := errors.AsType[*quota.DeadlineError](err)
		if !ok || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 300*time.Millisecond ||
			refusal.Wait <= 0 || refusal.Wait > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		cancel()
	}
	began := time.Now()
	if err := l.Wait(t.Context()); err != nil || time.Since(began) > 1500*time.Millisecond {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	l := primed(t, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	began := time.Now()
	if err := l.Wait(ctx); !errors.Is(err, context.Canceled) || time.Since(began) > 500*time.Millisecond {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if err := l.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestLookups uses the limiter as WithLimiter does.
func TestLookups(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := redistest.Connect(t, s)
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	l, err := quota.New(client, "lookups", 50, 1)
	if err != nil {
		t.Fatal(err)
	}
	fake := binstest.NewServer(t)
	lookups := fake.Client(bins.WithLimiter(l))
	lookup := func(ctx context.Context) error {
		_, err := lookups.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards("411111")})
		return err
	}
	if err := lookup(t.Context()); err != nil {
		t.Error(err)
	}
	var all sync.WaitGroup
	began := time.Now()
	for range 10 {
		all.Go(func() {
			if err := lookup(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took < 180*time.Millisecond {
		t.Errorf("10 lookups at 50 a second took %s", took)
	}
	s.Kill()
	err = lookup(t.Context())
	if _, ok := errors.AsType[*quota.UnavailableError](err); !ok || !errors.Is(err, bins.ErrLocalLimit) {
		t.Errorf("without Redis: %v", err)
	}
	if n := len(fake.Requests()); n != 11 {
		t.Errorf("%d requests were sent, want 11", n)
	}
}

func TestNew(t *testing.T) {
	client := redistest.Unused(t)
	for _, test := range []struct {
		name  string
		limit rate.Limit
		burst int
		good  bool
	}{
		{"a", 1, 1, true}, {"a\n\"b", 0.5, 10, true}, {"a", 1e6, 1, true},
		{"", 1, 1, false}, {"a", 0, 1, false}, {"a", -1, 1, false}, {"a", rate.Inf, 1, false}, {"a", 1, 0, false}, {"a", 1e-9, 1, false},
	} {
		if l, err := quota.New(client, test.name, test.limit, test.burst); (err == nil) != test.good || (l != nil) != test.good {
			t.Errorf("%+v: %v, %v", test, l, err)
		}
	}
	if _, err := quota.New(nil, "a", 1, 1); err == nil {
		t.Error("no client is no error")
	}
}
