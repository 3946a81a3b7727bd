package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
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
	s.settings.largest = 0 // a content that is larger never comes
	k := drawKind(c)
	if k.name == "submits" || k.name == "submitAll" {
		// A connection over HTTP/2 that broke unseen costs the refunds that find it out,
		// whenever they come: net/http cannot tell what of them has left.
		s.settings.http2 = false
	}
	s.workload = program{kind: k.name, callers: 1 + c.IntN(4), retried: c.percent(25), grace: c.within(20 * time.Second)}
	s.storm = storm{
		attempts: always, calls: pick(c, 50, 100), likely: pick(c, 30, 60, 100), dials: pick(c, 0, 20, 50),
		from: pick(c, faultKinds, k.faults), ends: pick(c, 10*time.Second, time.Minute, 10*time.Minute) + c.within(time.Second),
	}
	return s
}

const always = 1 << 30

// perCall is how many requests a call makes at most, when nothing befalls it.
const perCall = 20

// A program calls one operation until it ends well.
type program struct {
	kind    string
	callers int
	retried bool // at the end, many calls each meet one more fault
	grace   time.Duration
}

func (p program) play(w *world) {
	perform := p.operation(w)
	if perform == nil {
		return
	}
	due := w.began.Add(w.storm.ends + recovery)
	together(make([]int, p.callers), func(i int, _ int) {
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

// after finds what outlives its reason: a call waits for nothing and is not
// repeated, and as many calls as there may be are repeated when they fail.
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
	if !p.retried || p.kind != "lookups" && p.kind != "submits" && p.kind != "downloads" || w.settings.limit > 0 {
		return
	}
	w.storm.again = true
	for i := range budgetFull/costRetry + 1 {
		if err := perform(p.callers+1+i, 0); err != nil {
			w.violate(unended, "%s: call %d of those that meet one fault is not repeated: %v", p.kind, i, err)
			return
		}
	}
}

// A performance is what caller i does the nth time, until it returns no error.
type performance func(i, n int) error

// begun begins a call for it.
type begun func(i, n int) (context.Context, *call, context.CancelFunc)

// operation is nil if the harness is broken.
func (p program) operation(w *world) performance {
	call := func(i, n int) (context.Context, *call, context.CancelFunc) {
		patient := patience{deadline: 2 * time.Minute}
		if p.kind == "bulk" || p.kind == "submitAll" {
			patient.deadline = time.Hour // it waits for the service by itself
		}
		return w.call(fmt.Sprintf("%s %d.%d", p.kind, i, n), patient, 0)
	}
	switch p.kind {
	case "submits", "submitAll":
		return p.refunds(w, call)
	case "downloads", "files":
		return p.downloads(w, call)
	}
	client, err := bins.NewClient(baseURL, w.token(), w.options()...)
	if !w.must(err) {
		return nil
	}
	loader, err := bins.NewLoader(client, bins.LoaderOptions{})
	if !w.must(err) {
		return nil
	}
	return func(i, n int) error {
		ctx, c, stop := call(i, n)
		defer stop()
		c.concurrency, c.beginnings, c.patient, c.shared = 2, probes, p.kind == "bulk", p.kind == "loads"
		switch p.kind {
		case "lookups":
			_, err := client.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(cardsFrom(i, 1)...)})
			return err
		case "loads":
			_, err := loader.Load(ctx, cardsFrom(i/2, 1)[0])
			return err
		}
		var failed error
		for r, err := range client.LookupAll(ctx, slices.Values(cardsFrom(1000*i, 120)), bins.BulkOptions{Concurrency: 2}) {
			if err = cmp.Or(err, r.Err); err != nil {
				failed = err
			}
		}
		return failed
	}
}

func (p program) refunds(w *world, call begun) performance {
	client, err := w.refundClient()
	if !w.must(err) {
		return nil
	}
	// settled asks the service's record, as a program does that reconciles: a while
	// after, as what was sent may still arrive.
	settled := func(refund *refunds.Refund, err error) bool {
		w.arrive()
		return err == nil || errors.Is(err, refunds.ErrOutcomeUnknown) && w.service.records(refund) > 0
	}
	return func(i, n int) error {
		ctx, c, stop := call(i, n)
		defer stop()
		c.concurrency = 3
		if p.kind == "submits" {
			_, err := client.Submit(ctx, accountID, refundOf(i))
			if settled(refundOf(i), err) {
				return nil
			}
			return err
		}
		c.beginnings = probes
		left := make([]*refunds.Refund, 0, perCall)
		for k := range cap(left) {
			if refund := refundOf(100*i + k); w.service.records(refund) == 0 {
				left = append(left, refund)
			}
		}
		var failed error
		hear := func(one refunds.Submission) {
			if !settled(left[one.Index], one.Err) {
				failed = one.Err
			}
		}
		for one, err := range client.SubmitAll(ctx, refunds.Items(accountID, slices.Values(left)), refunds.BulkOptions{Concurrency: 3, Grace: p.grace + 1, Abandoned: hear}) {
			if err != nil {
				return err
			}
			hear(one)
		}
		return failed
	}
}

func (p program) downloads(w *world, call begun) performance {
	client, err := updater.NewClient(baseURL, "merchant-7", w.token(), w.options()...)
	if !w.must(err) {
		return nil
	}
	return func(i, n int) error {
		ctx, c, stop := call(i, n)
		defer stop()
		c.beginnings = 3 + w.settings.retries
		job := name("job", i)
		if p.kind == "downloads" {
			content, _, err := read(4<<10, func() (*updater.Download, error) { return client.Download(ctx, job) })
			if err == nil && !isContent(job, content) {
				w.violate(wrongBytes, "%s: %d bytes that are no version of the content", c, len(content))
			}
			return err
		}
		_, err := client.DownloadFile(ctx, job, filepath.Join(w.dir(), job+".csv"), updater.FileOptions{})
		return err
	}
}

// dir is a directory of the schedule's own.
func (w *world) dir() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.files == "" {
		dir, err := os.MkdirTemp("", "faults-")
		if err != nil {
			panic(err)
		}
		w.files = dir
	}
	return w.files
}
