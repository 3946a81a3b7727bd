package faults

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// recovery is by when everything has ended well, once the faults have ended: the
// longest pause that the service can ask for, the longest delay of a probe, what
// is on its way by then, and the rest of the work.
const recovery = 5 * time.Minute

// TestLiveness ends the faults after a while. Programs that call again until they
// have what they want then have it in time, and the client is as good as new. It
// takes longer than other schedules, and runs a fifth of them.
func TestLiveness(t *testing.T) {
	runSchedules(t, drawLiveness, max(1, *schedules/5), nil)
}

func drawLiveness(seed uint64) *schedule {
	s := draw(seed)
	c := s.chance("liveness")
	// A connection that stalls is waited for without end, where neither a timeout nor
	// a deadline bounds it; and a token that nobody renews stays refused.
	s.settings.attemptTimeout = pick(c, 3*time.Second, 10*time.Second, 35*time.Second)
	s.settings.retries = 1 + c.IntN(4)
	s.tokens.static = false
	k := drawKind(c)
	if k.name == "submits" || k.name == "submitAll" {
		// A connection over HTTP/2 that broke unseen costs the refunds that find it out,
		// whenever they come: net/http cannot tell what of them has left.
		s.settings.http2 = false
	}
	s.workload = program{kind: k.name, callers: 1 + c.IntN(4), grace: c.within(20 * time.Second)}
	s.storm = drawStorm(c, k)
	if c.percent(30) { // an outage
		down := pick(c, fault{status: 503}, fault{status: 429, retryAfter: "1"}, fault{status: 503, retryAfter: "3600"}, fault{unread: true}, fault{ends: true, how: stalled})
		s.storm.calls, s.storm.likely, s.storm.from = 100, 100, []func(chance) fault{func(chance) fault { return down }}
	}
	s.storm.attempts, s.storm.ends = math.MaxInt, pick(c, 10*time.Second, time.Minute, 10*time.Minute)+c.within(time.Second)
	return s
}

// perCall is how many requests a call makes at most, when nothing befalls it.
const perCall = 20

// A program calls one operation until it ends well.
type program struct {
	kind    string
	callers int
	grace   time.Duration
}

func (p program) play(w *world) {
	perform := p.operation(w)
	due := w.began.Add(w.storm.ends + recovery)
	together(p.callers, func(i int) {
		pauses := w.chance(fmt.Sprintf("pauses of %s %d", p.kind, i))
		for n := 0; ; n++ {
			err := perform(i, n)
			if err == nil {
				break
			}
			if time.Now().After(due) {
				w.violate(unended, "%s %d: %v after the last fault: %v", p.kind, i, time.Since(w.began)-w.storm.ends, err)
				return
			}
			time.Sleep(time.Second + pauses.within(time.Second))
		}
		w.count("ended well")
	})
	if now := time.Now(); now.After(due) {
		w.violate(unended, "%s: %v after the last fault", p.kind, now.Sub(w.began.Add(w.storm.ends)))
	}
	if len(w.violations) > 0 {
		return
	}
	time.Sleep(time.Until(due) + 3*time.Minute) // what was learnt from the faults is forgotten, too
	p.after(w, perform)
}

// after finds what outlives its reason: a call waits for nothing and is not repeated.
func (p program) after(w *world, perform performance) {
	began := time.Now()
	err := perform(p.callers, 0)
	allowed := time.Second + perCall*w.tokens.delay
	if w.settings.limit > 0 {
		allowed += time.Duration(float64(perCall) / float64(w.settings.limit) * float64(time.Second))
	}
	if took := time.Since(began); err != nil || took > allowed {
		w.violate(unended, "%s: a call long after the last fault took %v: %v", p.kind, took, err)
	}
}

// A performance is what caller i does the nth time, until it returns no error.
type performance func(i, n int) error

// operation makes the client, and is what its callers do: the call of a workload, by a
// patient caller.
func (p program) operation(w *world) performance {
	call := func(i, n int) string { return fmt.Sprintf("%s %d.%d", p.kind, i, n) }
	single := patience{deadline: 2 * time.Minute}
	bulky := patience{deadline: time.Hour} // the call waits for the service by itself
	switch p.kind {
	case "bulk":
		client := w.lookupClient()
		return func(i, n int) error {
			return bulk{patience: bulky, cards: cardsFrom(1000*i, 120), concurrency: 2}.call(w, client, call(i, n))
		}
	case "files":
		client := w.downloadClient()
		return func(i, n int) error {
			job := name("job", i)
			return w.file(client, call(i, n), single, job, filepath.Join(w.dir(), job+".csv"))
		}
	case "submitAll":
		client := w.refundClient()
		return func(i, n int) error {
			if left := w.unrecorded(i); len(left) > 0 {
				submitAll{patience: bulky, items: left, concurrency: 3, grace: p.grace + 1}.call(w, client, call(i, n))
			}
			if left := w.unrecorded(i); len(left) > 0 {
				return fmt.Errorf("%d refunds are left", len(left))
			}
			return nil
		}
	}
	perform := operations[p.kind](w)
	return func(i, n int) error {
		err := perform(i, call(i, n), single)
		if errors.Is(err, refunds.ErrOutcomeUnknown) && w.service.records(refundOf(i)) > 0 {
			return nil // a program finds out from the service's record
		}
		return err
	}
}

// unrecorded are those of a caller's refunds that the service has no record of.
func (w *world) unrecorded(caller int) (left []submitItem) {
	for n := perCall * caller; n < perCall*(caller+1); n++ {
		if refund := refundOf(n); w.service.records(refund) == 0 {
			left = append(left, submitItem{account: accountID, id: refund.RefundID, n: n})
		}
	}
	return left
}
