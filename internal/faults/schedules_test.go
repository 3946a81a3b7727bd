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
	"sync/atomic"
	"testing"
	"time"
)

var (
	schedules = flag.Uint64("schedules", 1000, "how many schedules to run")
	only      = flag.String("workload", "", "draw this kind of workload alone")
	seed      = flag.Uint64("seed", 0, "run the schedule of this seed alone, and print what happened")
)

func TestSchedules(t *testing.T) {
	log.SetOutput(io.Discard) // where net/http complains of what the service does
	first, n := rand.Uint64N(1<<48), *schedules
	if *seed != 0 {
		first, n = *seed, 1
	}
	began := time.Now()
	var next atomic.Uint64
	tallies := make(chan tally, runtime.GOMAXPROCS(0))
	t.Run("all", func(t *testing.T) {
		for i := range cap(tallies) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				sum := tally{}
				defer func() { tallies <- sum }()
				for !t.Failed() {
					i := next.Add(1) - 1
					if i >= n {
						return
					}
					w := run(t, draw(first+i))
					sum.add(w.tally)
					if *seed != 0 {
						t.Log(w)
					}
					for _, v := range w.violations {
						t.Errorf("seed %d: %v", w.seed, v)
					}
					if t.Failed() {
						next.Store(n)
						t.Logf("again: go test ./internal/faults -run Schedules -workload '%s' -seed %d -count 20\n%v", *only, w.seed, w)
					}
				}
			})
		}
	})
	close(tallies)
	sum := tally{}
	for one := range tallies {
		sum.add(one)
	}
	took := time.Since(began)
	t.Logf("%d schedules from seed %d in %v, %.0f a second", n, first, took.Round(time.Millisecond), float64(n)/took.Seconds())
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		t.Logf("%9d %s", sum[name], name)
	}
	if t.Failed() || n < 1000 || *only != "" {
		return
	}
	// A harness that met none of these would prove nothing.
	for _, name := range expected {
		if sum[name] == 0 {
			t.Errorf("no schedule met: %s", name)
		}
	}
}

var expected = []string{
	"lookup answered", "lookup failed", "bulk result", "bulk result failed", "load answered", "load failed",
	"refund accepted", "refund rejected", "refund not sent", "refund unknown, recorded", "refund unknown, not recorded",
	"download complete", "download failed", "file complete", "file failed", "rest of a download asked for", "request cut off", "request not read",
}
