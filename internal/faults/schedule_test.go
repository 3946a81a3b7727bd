package faults

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// A schedule is all that chance decides, drawn before anything runs.
type schedule struct {
	seed     uint64
	settings settings
	dials    []dialFault // one for each connection; then all is well
	faults   []fault     // one for each request, in order of arrival; then all is well
	tokens   tokens
	workload workload
}

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
	ownLimiter     bool // the limit is given as a Limiter, that is watched
	resubmit       bool // refunds whose outcome is unknown; the service removes duplicates
}

// tokens says how credentials behave.
type tokens struct {
	static bool
	delay  time.Duration // of the source
	fails  []bool        // each question to the source in turn; then it answers
}

func (s *schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\nsettings: %s\ntokens: %s\n", s.seed, set(s.settings), set(s.tokens))
	for i, d := range s.dials {
		fmt.Fprintf(&b, "dial %d: %v\n", i, d)
	}
	for i, f := range s.faults {
		fmt.Fprintf(&b, "request %d: %v\n", i, f)
	}
	fmt.Fprintf(&b, "workload: %T", s.workload)
	return b.String()
}

// draw makes the schedule of a seed.
func draw(seed uint64) *schedule {
	c := chance{rand.New(rand.NewPCG(seed, 0))}
	s := &schedule{seed: seed}
	s.settings = settings{
		http2:          c.percent(30),
		opaque:         c.percent(10),
		counted:        c.percent(70),
		idle:           pick(c, 0, 2*time.Second, 2*time.Second, 90*time.Second),
		retries:        c.IntN(5),
		attemptTimeout: pick(c, 0, 3*time.Second, 10*time.Second, 35*time.Second),
		waitBase:       pick(c, 0, 200*time.Millisecond, time.Second),
		waitMax:        pick(c, time.Second, 5*time.Second),
		ownLimiter:     c.percent(50),
		resubmit:       c.percent(15),
	}
	if c.percent(30) {
		s.settings.limit, s.settings.burst = rate.Limit(1+c.IntN(10)), 1+c.IntN(3)
	}
	if c.percent(20) {
		s.tokens.delay = c.within(2 * time.Second)
	}
	s.tokens.static = c.percent(10)
	for range c.IntN(4) {
		s.tokens.fails = append(s.tokens.fails, c.percent(15))
	}
	k := drawKind(c)
	s.workload = k.draw(c, 1+c.IntN(6))
	requests := 2 + c.IntN(10)
	switch {
	case c.percent(4): // all is well
		requests = 0
		s.tokens.fails = nil
	case c.percent(1) && (*only == "" || *only == "crowd"):
		return s.outage(c)
	}
	if requests > 0 {
		for range c.IntN(5) {
			s.dials = append(s.dials, drawDialFault(c))
		}
	}
	likely := pick(c, 30, 60, 100) // percent of the requests that meet a fault
	from := pick(c, faultKinds, k.faults)
	for range requests {
		f := fault{}
		if c.percent(likely) {
			f = drawFault(c, from)
		}
		s.faults = append(s.faults, f)
	}
	return s
}

// outage makes a service that fails for long under many calls, so that their
// repetitions come to the end of the budget.
func (s *schedule) outage(c chance) *schedule {
	s.workload = drawCrowd(c, 80+c.IntN(120))
	s.settings.retries = 2 + c.IntN(3)
	s.settings.limit = 0
	s.settings.http2 = false
	s.tokens = tokens{}
	f := pick(c, fault{status: 503}, fault{status: 429}, fault{unread: true}, fault{status: 429, retryAfter: "1"})
	for range 1000 {
		s.faults = append(s.faults, f)
	}
	return s
}

// chance draws.
type chance struct{ *rand.Rand }

func (c chance) percent(p int) bool { return c.IntN(100) < p }

// within draws a time that hardly ever comes together with another.
func (c chance) within(d time.Duration) time.Duration { return time.Duration(c.Int64N(int64(d))) }

func pick[T any](c chance, of ...T) T { return of[c.IntN(len(of))] }
