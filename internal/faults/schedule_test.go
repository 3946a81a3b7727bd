package faults

import (
	"crypto/fips140"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A schedule is all that chance decides. What befalls an attempt, a dial or a
// question for a token is drawn by its name, and not by when it comes, so that it
// is the same whatever else goes on.
type schedule struct {
	seed     uint64
	settings settings
	storm    storm
	tokens   tokens
	parts    parts
	workload workload
	without  map[string]bool // that are left out, to find out which it takes
	age      func() time.Duration

	mu  sync.Mutex
	met []befallen
}

// A befallen is what a fault befell.
type befallen struct{ name, fault string }

// settings are those of the client and of its HTTP transport.
type settings struct {
	http2   bool
	opaque  bool          // the HTTP transport reports no events
	counted bool          // its connections count bytes
	idle    time.Duration // that connections are kept; 0: not at all

	retries        int
	attemptTimeout time.Duration
	waitBase       time.Duration
	waitMax        time.Duration
	limit          rate.Limit // 0: none
	burst          int
	ownLimiter     bool          // the limit is given as a Limiter, that is watched
	largest        int64         // response, in bytes; 0: as the library has it
	resumes        time.Duration // of a download, without progress
	resubmit       bool          // refunds whose outcome is unknown; the service removes duplicates
}

// A storm is which requests and dials meet faults. Shares are in percent.
type storm struct {
	attempts int // of a call: the first so many may meet one
	calls    int // share of the requests that do
	likely   int // share of their attempts
	dials    int // share of the dials
	from     []func(chance) fault
	outage   *fault        // that all meet
	ends     time.Duration // 0: with the schedule
	again    bool          // and then the first attempt of each request is refused once
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
	fmt.Fprintf(&b, "seed %d, %d at a time\nsettings: %s\ntokens: %s\n", s.seed, *callers, set(s.settings), set(s.tokens))
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
		counted:        c.percent(70),
		idle:           pick(c, 0, 2*time.Second, 2*time.Second, 90*time.Second),
		retries:        c.IntN(5),
		attemptTimeout: pick(c, 0, 3*time.Second, 10*time.Second, 35*time.Second),
		waitBase:       pick(c, 0, 200*time.Millisecond, time.Second),
		waitMax:        pick(c, time.Second, 5*time.Second),
		ownLimiter:     c.percent(50),
		resumes:        pick(c, time.Second, 30*time.Second, 5*time.Minute),
		resubmit:       c.percent(15),
		largest:        pick[int64](c, 0, 0, 0, 64<<10),
	}
	// net/http draws crypto/rand there, whose source reads a clock that stands still.
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
	s.workload = k.draw(c, min(1+c.IntN(6), *callers))
	switch {
	case c.percent(4): // all is well
		s.tokens.fails = 0
	case *callers > 1 && c.percent(1) && (*only == "" || *only == "crowd"):
		s.outage(c)
	default:
		s.storm = storm{
			attempts: 1 + c.IntN(10), calls: pick(c, 50, 100, 100), likely: pick(c, 30, 60, 100),
			dials: pick(c, 0, 20, 50), from: pick(c, faultKinds, k.faults, statusFaults),
		}
	}
	return s
}

// outage makes a service that fails for long under many calls, so that their
// repetitions come to the end of the budget.
func (s *schedule) outage(c chance) {
	s.workload = drawCrowd(c, 80+c.IntN(120))
	s.settings.retries = 2 + c.IntN(3)
	s.settings.limit = 0
	s.settings.http2 = false
	s.tokens = tokens{}
	f := pick(c, fault{status: 503}, fault{status: 429}, fault{unread: true}, fault{status: 429, retryAfter: "1"})
	s.storm.outage = &f
}

// fault is what befalls an attempt of a request of the library, the nth arrival
// of it at the service.
func (s *schedule) fault(a attemptName, arrival int) (f fault) {
	m := s.storm
	switch {
	case m.outage != nil:
		return *m.outage
	case m.again && a.n == 1:
		return fault{status: 429}
	case a.turn > m.attempts || s.isOver() || !s.chance("request "+a.request).percent(m.calls):
		return fault{}
	}
	name := fmt.Sprintf("%v, arrival %d", a, arrival)
	if arrival == 1 {
		name = a.String()
	}
	c := s.chance("fault of " + name)
	if s.without[name] || !c.percent(m.likely) {
		return fault{}
	}
	f = drawFault(c, m.from)
	s.befell(name, f.String())
	return f
}

// dialFault is what befalls a dial for an attempt.
func (s *schedule) dialFault(a attemptName, dial int) (f dialFault) {
	name := fmt.Sprintf("%v, dial %d", a, dial)
	c := s.chance(name)
	if a.turn > s.storm.attempts || s.isOver() || s.without[name] || !c.percent(s.storm.dials) {
		return dialFault{}
	}
	if f = drawDialFault(c); f != (dialFault{}) {
		s.befell(name, f.String())
	}
	return f
}

// tokenFails tells whether a caller's nth question for a token fails.
func (s *schedule) tokenFails(caller string, n int) bool {
	name := fmt.Sprintf("%s, question %d for a token", caller, n)
	if n > 3 || s.isOver() || s.without[name] || !s.chance(name).percent(s.tokens.fails) {
		return false
	}
	s.befell(name, "fails")
	return true
}

func (s *schedule) befell(name, fault string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.met = append(s.met, befallen{name, fault})
}
