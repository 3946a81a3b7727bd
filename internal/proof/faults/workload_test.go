package faults

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

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
	{"lookups", 1, drawCallers("lookups"), faultKinds},
	{"bulk", 1, drawBulk, faultKinds},
	{"loads", 1, drawLoads, faultKinds},
	{"submits", 2, drawCallers("submits"), faultKinds},
	{"submitAll", 2, drawSubmitAll, faultKinds},
	{"downloads", 2, drawCallers("downloads"), contentFaults},
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

// callers make a call each of one kind, all at once.
type callers struct {
	kind string
	list []patience
}

func drawCallers(kind string) func(c chance, n int) workload {
	return func(c chance, n int) workload {
		s := callers{kind: kind}
		for range n {
			s.list = append(s.list, drawPatience(c))
		}
		return s
	}
}

// drawLoads draws calls of one Loader, most of which share its requests.
func drawLoads(c chance, n int) workload {
	s := drawCallers("loads")(c, 3*n).(callers)
	for i := range s.list {
		if c.percent(70) {
			s.list[i].start = c.within(5 * time.Millisecond)
		}
	}
	return s
}

func (s callers) play(w *world) {
	perform := operations[s.kind](w)
	together(len(s.list), func(i int) { perform(i, name(s.kind, i), s.list[i]) })
}

// operations make a client, and are what caller i does with it.
var operations = map[string]func(w *world) func(i int, name string, p patience) error{
	"lookups": func(w *world) func(int, string, patience) error {
		client := w.lookupClient()
		return func(i int, name string, p patience) error {
			n := pick(w.chance("cards of "+name), 1, 2, 3, bins.MaxCards)
			return w.lookup(client, name, p, cardsFrom(i*bins.MaxCards, n))
		}
	},
	"loads": func(w *world) func(int, string, patience) error {
		loader := made(bins.NewLoader(w.lookupClient(), bins.LoaderOptions{}))
		return func(i int, name string, p patience) error { return w.load(loader, name, p, cardsFrom(i/2, 1)[0]) }
	},
	"submits": func(w *world) func(int, string, patience) error {
		client := w.refundClient()
		return func(i int, name string, p patience) error { return w.submit(client, name, p, refundOf(i)) }
	},
	"downloads": func(w *world) func(int, string, patience) error {
		client := w.downloadClient()
		return func(i int, call string, p patience) error { return w.download(client, call, p, name("job", i)) }
	},
}

// together runs n callers at once, and waits for them.
func together(n int, play func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { play(i) })
	}
	all.Wait()
}

// name names a call.
func name(operation string, i int) string { return fmt.Sprintf("%s %d", operation, i) }
