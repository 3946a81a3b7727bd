package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
)

// A report counts the calls by kind.
type report struct {
	mu    sync.Mutex
	kinds map[string]*kind
}

type kind struct {
	calls    int
	outcomes map[string]int
	times    [500]int // by the logarithm of the duration to the base of growth
}

const growth = 1.05

func newReport() *report { return &report{kinds: map[string]*kind{}} }

func (r *report) add(name string, took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.kinds[name]
	if k == nil {
		k = &kind{outcomes: map[string]int{}}
		r.kinds[name] = k
	}
	k.calls++
	k.outcomes[outcomeOf(err)]++
	bucket := math.Log(float64(max(took, time.Microsecond)/time.Microsecond)) / math.Log(growth)
	k.times[min(int(bucket), len(k.times)-1)]++
}

func outcomeOf(err error) string {
	var outcome *refunds.OutcomeError
	switch {
	case err == nil:
		return "succeeded"
	case errors.As(err, &outcome):
		return outcome.Outcome.String()
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	case errors.Is(err, bins.ErrServer):
		return "server error"
	}
	return "failed"
}

// quantile returns the duration that a share of the calls stayed below, to a
// twentieth.
func (k *kind) quantile(share float64) time.Duration {
	left := int(share * float64(k.calls))
	for bucket, n := range k.times {
		if left -= n; left <= 0 {
			return time.Duration(math.Pow(growth, float64(bucket+1))) * time.Microsecond
		}
	}
	return 0
}

func (r *report) print(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CALL\tCALLS\tP50\tP99\tOUTCOMES")
	for _, name := range slices.Sorted(maps.Keys(r.kinds)) {
		k := r.kinds[name]
		fmt.Fprintf(table, "%s\t%d\t%v\t%v\t", name, k.calls, k.quantile(0.5), k.quantile(0.99))
		for i, outcome := range slices.Sorted(maps.Keys(k.outcomes)) {
			if i > 0 {
				fmt.Fprint(table, ", ")
			}
			fmt.Fprintf(table, "%d %s", k.outcomes[outcome], outcome)
		}
		fmt.Fprintln(table)
	}
	table.Flush()
}

// A footprint is what the program holds while no call is running.
type footprint struct {
	goroutines int
	heap       uint64
	files      int // open, of which all but a few are connections
}

func measure() footprint {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), m.HeapAlloc, openFiles()}
}

// settle waits, but not for ever, until no more is held than before.
func settle(before footprint) footprint {
	after := measure()
	for range 50 {
		if before.outgrownBy(after) == "" {
			break
		}
		time.Sleep(100 * time.Millisecond)
		after = measure()
	}
	return after
}

// openFiles counts them where /proc tells.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

func (f footprint) String() string {
	return fmt.Sprintf("%d goroutines, %.1f MiB of heap, %d open files", f.goroutines, float64(f.heap)/(1<<20), f.files)
}

// outgrownBy says in what a later footprint is larger. The heap also has the
// report, and caches and pools up to their bounds.
func (f footprint) outgrownBy(later footprint) string {
	switch {
	case later.goroutines > f.goroutines:
		return fmt.Sprintf("%d goroutines, where there were %d", later.goroutines, f.goroutines)
	case later.files > f.files:
		return fmt.Sprintf("%d open files, where there were %d", later.files, f.files)
	case later.heap > f.heap+16<<20:
		return fmt.Sprintf("%d bytes of heap, where there were %d", later.heap, f.heap)
	}
	return ""
}
