package faults

import (
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var (
	schedules = flag.Uint64("schedules", 1000, "how many schedules to run; one alone is printed with what happened")
	only      = flag.String("workload", "", "draw this kind of workload alone")
	seed      = flag.Uint64("seed", 1, "the first schedule's, so that two runs are of the same; 0: any")
)

// TestSchedules holds the three clients to their promises under random faults.
func TestSchedules(t *testing.T) { runSchedules(t, draw, *schedules, expected) }

// runSchedules runs n schedules and prints what they met. Everything that is expected must
// be among it.
func runSchedules(t *testing.T, draw func(seed uint64) *schedule, n uint64, expected []string) {
	log.SetOutput(io.Discard) // where net/http complains of what the service does
	first := *seed
	if first == 0 {
		first = rand.Uint64N(1 << 48)
	}
	began := time.Now()
	all := runAll(t, draw, first, n)
	took := time.Since(began)
	if t.Failed() {
		return
	}
	sum := tally{}
	for _, w := range all {
		sum.add(w)
	}
	t.Logf("%d schedules from seed %d in %v, %.0f a second", n, first, took.Round(time.Millisecond), float64(n)/took.Seconds())
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		t.Logf("%9d %s", sum[name], name)
	}
	if n < 1000 || *only != "" || len(expected) == 0 {
		return
	}
	// A harness that met none of these would prove nothing.
	for _, name := range expected {
		if sum[name] == 0 {
			t.Errorf("no schedule met: %s", name)
		}
	}
}

// runAll runs schedules, several at a time, until one fails.
func runAll(t *testing.T, draw func(seed uint64) *schedule, first, n uint64) []tally {
	all := make([]tally, n)
	spread(t, "all", int(n), func(t *testing.T, i int) {
		w := run(t, draw(first+uint64(i)))
		all[i] = w.tally
		if n == 1 {
			t.Log(w)
		}
		if len(w.violations) > 0 {
			fail(t, w)
		}
	})
	return all
}

// spread does a thing n times, several at a time, until it fails.
func spread(all *testing.T, name string, n int, do func(t *testing.T, i int)) {
	var taken atomic.Int64
	all.Run(name, func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for i := int(taken.Add(1)); i <= n && !all.Failed(); i = int(taken.Add(1)) {
					do(t, i-1)
				}
			})
		}
	})
}

// fail reports a schedule that broke a promise.
func fail(t *testing.T, w *world) {
	for _, v := range w.violations {
		t.Errorf("seed %d: %v", w.seed, v)
	}
	t.Logf("again: go test ./internal/proof/faults -run '^%s$' -workload '%s' -schedules 1 -seed %d -v", strings.SplitN(t.Name(), "/", 2)[0], *only, w.seed)
	t.Log(w)
}

var expected = []string{
	"lookup answered", "lookup failed", "bulk result", "bulk result failed", "load answered", "load failed",
	"refund accepted", "refund rejected", "refund not sent", "refund unknown, recorded", "refund unknown, not recorded",
	"download complete", "download failed", "file complete", "file failed", "rest of a download asked for", "request cut off", "request not read",
}
