package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A part is what the caller gives the library, or what its program stands on.
type part string

const (
	tokenSource  part = "token source"
	limiter      part = "limiter"
	logger       part = "logger"
	roundTripper part = "round tripper"
)

// A misdeed is what a part does in place of its duty.
type misdeed string

const (
	fails  misdeed = "fails"
	hangs  misdeed = "hangs" // until its context ends
	panics misdeed = "panics"
	lies   misdeed = "lies"
)

// misdeeds are those that each part can do. The table in doc.go says what each may cost.
var misdeeds = []struct {
	part part
	does []misdeed
	try  []string // workloads
}{
	{tokenSource, []misdeed{fails, hangs, panics, lies}, []string{"lookups", "bulk", "loads", "downloads", "files"}},
	{limiter, []misdeed{fails, hangs, panics}, everyKind},
	{logger, []misdeed{panics}, everyKind},
	{roundTripper, []misdeed{fails, hangs, panics, lies}, everyKind},
}

var everyKind = []string{"lookups", "bulk", "loads", "submits", "submitAll", "downloads", "files"}

// parts says which of the caller's parts misbehaves.
type parts struct {
	part  part
	does  misdeed
	share int // of a caller's first questions, in percent
}

const (
	longestHang  = 2 * time.Minute
	mostMisdeeds = 4 // of one caller's
)

// TestParts has the caller's own parts fail, hang, panic and lie, half the time while all else
// is well. It runs a fifth of the schedules.
func TestParts(t *testing.T) {
	var met []string
	for _, m := range misdeeds {
		for _, does := range m.does {
			met = append(met, metPart(m.part, does))
		}
	}
	runSchedules(t, drawParts, max(1, *schedules/5), met)
}

func metPart(p part, does misdeed) string { return fmt.Sprintf("the %s %s", p, does) }

func drawParts(seed uint64) *schedule {
	s := draw(seed)
	c := s.chance("parts")
	m := pick(c, misdeeds...)
	s.parts = parts{part: m.part, does: pick(c, m.does...), share: pick(c, 10, 50, 100)}
	name := pick(c, m.try...)
	k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
	s.workload = k.draw(c, 1+c.IntN(mostCallers))
	s.storm = storm{}
	if c.percent(50) {
		s.storm = drawStorm(c, k)
	}
	if s.parts.part == tokenSource {
		s.tokens.static = false
	}
	return s
}

// errThrown is what the caller's parts panic with.
var errThrown = errors.New("on purpose")

// misbehave has a part do at a caller's next question what it does by the schedule.
// To fail or to lie is left to the part itself.
func (w *world) misbehave(ctx context.Context, p part) misdeed {
	if w.parts.part != p {
		return ""
	}
	c := callOf(ctx)
	w.mu.Lock()
	name := fmt.Sprintf("%v, question for the %s", c, p)
	w.questions[name]++
	n := w.questions[name]
	w.mu.Unlock()
	name = fmt.Sprintf("%s %d", name, n)
	chance := w.chance(name)
	if n > mostMisdeeds || !chance.percent(w.parts.share) {
		return ""
	}
	does := w.parts.does
	w.note("%s: %s", name, does)
	w.count(metPart(p, does))
	switch does {
	case hangs:
		sleep(ctx, chance.within(longestHang))
	case panics:
		w.mu.Lock()
		w.threw = true
		if c != nil {
			c.threw = true
		}
		w.mu.Unlock()
		panic(errThrown)
	}
	return does
}

// guard uses the library on a goroutine of its own, and tells whether it returned.
// What a part throws reaches the caller, and nothing else does.
func (c *call) guard(use func()) (returned bool) {
	w := c.w
	if w.parts.part == "" {
		use()
		return true
	}
	var thrown any
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { thrown = recover() }()
		use()
		returned = true
	}()
	<-ended
	w.mu.Lock()
	threw, any := c.threw, w.threw
	w.mu.Unlock()
	switch err, _ := thrown.(error); {
	case returned && threw && c.ctx.Err() == nil && !c.left:
		w.violate(swallowed, "%s: what a part of the caller's threw did not reach it", c)
	case returned:
	case !any || err != errThrown:
		w.violate(swallowed, "%s: panicked by itself: %v", c, thrown)
	default:
		w.count("call ended by the caller's own part")
		w.arrive()
		c.leavesNothing()
	}
	return returned
}

// hold has the caller's own loop or input take its time.
func (c *call) hold(d time.Duration) {
	time.Sleep(d)
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.held = time.Now()
}

// isHeld tells whether the caller's own code held a call that nothing ends.
func (c *call) isHeld(now time.Time) bool {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return !now.After(c.held)
}

// leavesNothing looks for attempts that go on after their call.
func (c *call) leavesNothing() {
	if n := c.w.wire.underWay(c); n > 0 {
		c.w.violate(leaked, "%s: %d attempts go on", c, n)
	}
}

// isThrown tells whether an error stands for the result that a panic has cost.
func (c *call) isThrown(err error) bool {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.w.threw && strings.Contains(fmt.Sprint(err), "panicked")
}
