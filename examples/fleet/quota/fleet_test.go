package quota_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/examples/fleet/internal/redisserver"
	"github.com/carddata/carddata-go/examples/fleet/internal/redistest"
	"github.com/carddata/carddata-go/examples/fleet/quota"
)

// A fleet is four replicas of four goroutines each that ask for leave without a
// pause, as long as it runs, and keeps what became of it.
type fleet struct {
	limit rate.Limit
	burst int
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu    sync.Mutex
	waits []wait
}

// A wait is one call of Wait.
type wait struct {
	began, ended time.Time
	err          error
}

// patience is the deadline of each of its waits.
const patience = 2 * time.Second

func startFleet(t *testing.T, s *redisserver.Server, limit rate.Limit, burst int) *fleet {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &fleet{limit: limit, burst: burst, stop: stop}
	for range 4 {
		l, err := quota.New(redistest.Connect(t, s), "fleet", limit, burst)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			f.done.Go(func() {
				for ctx.Err() == nil {
					if f.ask(ctx, l) != nil {
						time.Sleep(5 * time.Millisecond) // not to spin while Redis is away
					}
				}
			})
		}
	}
	return f
}

func (f *fleet) ask(ctx context.Context, l *quota.Limiter) error {
	w := wait{began: time.Now()}
	ctx, cancel := context.WithDeadline(ctx, w.began.Add(patience))
	defer cancel()
	w.err = l.Wait(ctx)
	w.ended = time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits = append(f.waits, w)
	return w.err
}

// finish ends the fleet and returns all its waits, having checked what must hold
// whatever happened: the limit in every window, and the end of every wait.
func (f *fleet) finish(t *testing.T) []wait {
	t.Helper()
	f.stop()
	f.done.Wait()
	var leaves []time.Time
	for _, w := range f.waits {
		if took := w.ended.Sub(w.began); took > patience+500*time.Millisecond {
			t.Errorf("a wait took %s", took)
		}
		if w.err == nil {
			leaves = append(leaves, w.ended)
		}
	}
	slices.SortFunc(leaves, time.Time.Compare)
	worst, window := 0.0, time.Duration(0)
	for i := range leaves {
		for j := i; j < len(leaves); j++ {
			d := leaves[j].Sub(leaves[i])
			allowed := float64(f.burst) + float64(f.limit)*(d+100*time.Millisecond).Seconds()
			if over := float64(j-i+1) - allowed; over > worst {
				worst, window = over, d
			}
		}
	}
	if worst > 0 {
		t.Errorf("leave was given %.1f times too often within %s", worst, window)
	}
	t.Logf("%d leaves in %d waits", len(leaves), len(f.waits))
	return f.waits
}

// count returns how many waits ended between two times, and how many of them with
// leave.
func count(waits []wait, from, to time.Time) (all, leaves int) {
	for _, w := range waits {
		if w.ended.Before(from) || w.ended.After(to) {
			continue
		}
		all++
		if w.err == nil {
			leaves++
		}
	}
	return all, leaves
}
