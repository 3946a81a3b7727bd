package faults

import (
	"context"
	"crypto/fips140"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// A schedule is all that chance decides. The fault of an attempt, a dial or a question for a
// token depends on its name and not on when it comes, so that other goroutines do not change
// it.
type schedule struct {
	seed     uint64
	settings settings
	storm    storm
	tokens   tokens
	parts    parts
	workload workload
	age      func() time.Duration
	every    *sequence // decides in place of chance
	spoiled  spoiler   // breaks a promise of the library, to see whether it is noticed
}

// mostCallers are those of one schedule.
const mostCallers = 6

// settings are those of the client and of its HTTP transport.
type settings struct {
	http2  bool
	opaque bool          // the HTTP transport reports no events
	idle   time.Duration // that connections are kept; 0: not at all

	retries        int
	attemptTimeout time.Duration
	waitBase       time.Duration
	waitMax        time.Duration
	limit          rate.Limit // 0: none
	burst          int
	resubmit       bool // refunds of unknown outcome, and the service records each once
	vouched        bool // the service sends some statuses only if it has processed nothing
}

// A storm is which requests and dials meet faults. Shares are in percent.
type storm struct {
	attempts int // of a call: the first so many may meet one
	calls    int // share of the requests that do
	likely   int // share of their attempts
	dials    int // share of the dials
	from     []func(chance) fault
	ends     time.Duration // 0: with the schedule
}

// isOver tells whether there are no faults any more.
func (s *schedule) isOver() bool { return s.storm.ends > 0 && s.age() > s.storm.ends }

// tokens says how credentials behave. Shares are in percent.
type tokens struct {
	static bool
	delay  time.Duration // of the source
	fails  int           // share of a caller's first three questions
}

func (s *schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\nsettings: %s\ntokens: %s\n", s.seed, set(s.settings), set(s.tokens))
	if s.parts.part != "" {
		fmt.Fprintf(&b, "the caller's parts: %s\n", set(s.parts))
	}
	fmt.Fprintf(&b, "workload: %s", strings.TrimPrefix(fmt.Sprintf("%T", s.workload), "faults."))
	return b.String()
}

// draw makes the schedule of a seed.
func draw(seed uint64) *schedule {
	s := &schedule{seed: seed}
	c := s.chance("schedule")
	s.settings = settings{
		http2:          c.percent(40),
		opaque:         c.percent(10),
		idle:           pick(c, 0, 2*time.Second, 2*time.Second, 90*time.Second),
		retries:        c.IntN(5),
		attemptTimeout: pick(c, 0, 3*time.Second, 10*time.Second, 35*time.Second),
		waitBase:       pick(c, 0, 200*time.Millisecond, time.Second),
		waitMax:        pick(c, time.Second, 5*time.Second),
		resubmit:       c.percent(15),
		vouched:        c.percent(15),
	}
	// net/http uses crypto/rand there. With FIPS, its source reads a clock that stands still.
	s.settings.http2 = s.settings.http2 && !fips140.Enabled()
	if c.percent(30) {
		s.settings.limit, s.settings.burst = rate.Limit(1+c.IntN(10)), 1+c.IntN(3)
	}
	if c.percent(20) {
		s.tokens.delay = c.within(2 * time.Second)
	}
	s.tokens.static = c.percent(10)
	s.tokens.fails = pick(c, 0, 0, 15)
	k := drawKind(c)
	s.workload = k.draw(c, 1+c.IntN(mostCallers))
	s.storm = drawStorm(c, k)
	if c.percent(4) { // all is well
		s.tokens.fails, s.storm = 0, storm{}
	}
	return s
}

func drawStorm(c chance, k kind) storm {
	return storm{
		attempts: 1 + c.IntN(10), calls: pick(c, 50, 100, 100), likely: pick(c, 30, 60, 100),
		dials: pick(c, 0, 20, 50), from: pick(c, faultKinds, k.faults),
	}
}

// fault is what befalls an attempt of a request of the library, the nth arrival
// of it at the service.
func (s *schedule) fault(a attemptName, arrival int) (f fault) {
	if s.every != nil {
		return s.every.fault(s.age(), a)
	}
	m := s.storm
	if a.turn > m.attempts || s.isOver() || !s.chance("request "+a.request).percent(m.calls) {
		return fault{}
	}
	name := fmt.Sprintf("%v, arrival %d", a, arrival)
	if arrival == 1 {
		name = a.String()
	}
	c := s.chance("fault of " + name)
	if !c.percent(m.likely) {
		return fault{}
	}
	return drawFault(c, m.from)
}

// dialFault is what befalls a dial for an attempt.
func (s *schedule) dialFault(a attemptName, dial int) (f dialFault) {
	if s.every != nil {
		return s.every.dialFault(s.age(), a, dial)
	}
	name := fmt.Sprintf("%v, dial %d", a, dial)
	c := s.chance(name)
	if a.turn > s.storm.attempts || s.isOver() || !c.percent(s.storm.dials) {
		return dialFault{}
	}
	return drawDialFault(c)
}

// tokenFails tells whether a caller's nth question for a token fails.
func (s *schedule) tokenFails(caller string, n int) bool {
	name := fmt.Sprintf("%s, question %d for a token", caller, n)
	return n <= 3 && !s.isOver() && s.chance(name).percent(s.tokens.fails)
}

// An attemptName names an attempt of a request of the library: by the call that
// it belongs to, by what it asks for, and by how many attempts came before it.
type attemptName struct {
	request string
	n       int
	turn    int // among all attempts of the call, if they come one after the other
}

func (a attemptName) String() string { return fmt.Sprintf("%s, attempt %d", a.request, a.n) }

type attemptKey struct{}

func attemptOf(ctx context.Context) attemptName {
	a, _ := ctx.Value(attemptKey{}).(attemptName)
	return a
}

// chance draws.
type chance struct{ *rand.Rand }

// chance is what decides what is named, for a schedule.
func (s *schedule) chance(name string) chance {
	h := fnv.New64a()
	h.Write([]byte(name))
	return chance{rand.New(rand.NewPCG(s.seed, h.Sum64()))}
}

func (c chance) percent(p int) bool { return c.IntN(100) < p }

// within draws a time that hardly ever comes together with another.
func (c chance) within(d time.Duration) time.Duration { return time.Duration(c.Int64N(int64(d))) }

func pick[T any](c chance, of ...T) T { return of[c.IntN(len(of))] }

// jitter draws the random part of a wait of the library.
func (w *world) jitter(ctx context.Context, below time.Duration) time.Duration {
	who := callOf(ctx).String()
	w.mu.Lock()
	w.waits[who]++
	n := w.waits[who]
	w.mu.Unlock()
	return w.chance(fmt.Sprintf("wait %d of %s", n, who)).within(below)
}

// brief names something long in a few characters.
func brief(text string) string {
	h := fnv.New32a()
	h.Write([]byte(text))
	return fmt.Sprintf("%08x", h.Sum32())
}
