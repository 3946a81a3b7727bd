package faults

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
	"github.com/carddata/carddata-go/updater"
)

// A workload is a way to use the library. It plays within the bubble, and
// returns when its calls have.
type workload interface {
	play(w *world)
}

// A kind of workload has a share of the schedules, and faults that try it most.
type kind struct {
	name   string
	share  int
	draw   func(c chance, callers int) workload
	faults []func(c chance) fault
}

var kinds = []kind{
	{"lookups", 1, drawLookups, faultKinds},
	{"bulk", 1, drawBulk, faultKinds},
	{"loads", 1, drawLoads, faultKinds},
	{"submits", 2, drawSubmits, faultKinds},
	{"submitAll", 2, drawSubmitAll, faultKinds},
	{"downloads", 2, drawDownloads, contentFaults},
	{"files", 1, drawFiles, contentFaults},
}

// drawKind draws one, or the one asked for.
func drawKind(c chance) kind {
	var hat []kind
	for _, k := range kinds {
		if *only == "" || *only == k.name {
			hat = append(hat, slices.Repeat([]kind{k}, k.share)...)
		}
	}
	return pick(c, hat...)
}

// options are what the schedule says, as options of all three packages.
func (w *world) options() []options.Option {
	s := w.settings
	opts := []options.Option{
		options.WithHTTPClient(w.client()),
		options.WithInsecureHTTP(),
		options.WithMaxRetries(s.retries),
		options.WithAttemptTimeout(s.attemptTimeout),
		options.WithRetryWait(s.waitBase, s.waitMax),
		options.WithLogger(slog.New(watchedLogger{w})),
	}
	switch {
	case w.parts.part == limiter:
		opts = append(opts, options.WithLimiter(&watchedLimiter{w, rate.NewLimiter(20, 3)}))
	case s.limit > 0:
		opts = append(opts, options.WithRateLimit(s.limit, s.burst))
	}
	return opts
}

func (w *world) lookupClient() *bins.Client {
	return made(bins.NewClient(baseURL, w.token(), options.For[bins.Option](w.options())...))
}

func (w *world) downloadClient() *updater.Client {
	return made(updater.NewClient(baseURL, "merchant-7", w.token(), options.For[updater.Option](w.options())...))
}

// made is what cannot fail in the harness itself.
func made[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// token is the source of the schedule's tokens.
func (w *world) token() bins.TokenSource {
	if w.tokens.static {
		return bins.StaticToken(tokenOf(0))
	}
	return source{w}
}

// together runs all callers at once, and waits for them.
func together[T any](list []T, play func(i int, caller T)) {
	var all sync.WaitGroup
	for i, caller := range list {
		all.Go(func() { play(i, caller) })
	}
	all.Wait()
}

// name names a call.
func name(operation string, i int) string { return fmt.Sprintf("%s %d", operation, i) }
