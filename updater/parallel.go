package updater

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

const (
	// maxParallel is more than any service is glad to see.
	maxParallel = 64
	// probeSize is what the first request of a parallel download asks for, as its
	// answer tells whether there are ranges, and of what length.
	probeSize = 1 << 20
	// segmentSize is about what one request brings: enough to pay for its
	// connection, and little to lose when the process is killed.
	segmentSize = 16 << 20
	minSegment  = 1 << 20
)

// A plan hands out the segments of a content, and knows how far it is whole.
type plan struct {
	next, size, total int64
	whole             int64
	done              map[int64]int64 // segments behind a gap: begin to end
}

// newPlan plans a content that is whole up to an offset, and whose first segment
// ends at another. The others are of one size, as many for each worker.
func newPlan(whole, first, total int64, workers int) *plan {
	rest := total - first
	turn := int64(workers) * segmentSize
	turns := max(1, (rest+turn/2)/turn)
	parts := int64(workers) * turns
	return &plan{
		next: first, size: max(minSegment, (rest+parts-1)/parts), total: total,
		whole: whole, done: map[int64]int64{},
	}
}

// take returns the next segment; begin and end are equal when there is none.
func (p *plan) take() (begin, end int64) {
	begin, end = p.next, min(p.next+p.size, p.total)
	p.next = end
	return begin, end
}

// finish notes that a segment is complete, and tells whether more is whole now.
func (p *plan) finish(begin, end int64) bool {
	p.done[begin] = end
	before := p.whole
	for {
		end, ok := p.done[p.whole]
		if !ok {
			return p.whole > before
		}
		delete(p.done, p.whole)
		p.whole = end
	}
}

// parallel fetches first, the part that the first request asked for, and the
// segments behind it by several workers at once. A worker that a callback of the
// caller's ends, by a panic or by runtime.Goexit, ends the caller in the same way.
func (t *transfer) parallel(ctx context.Context, cancel context.CancelFunc, first *content) error {
	template := first.at(ctx, 0, 0)
	plan := newPlan(first.pos, first.end, t.version.Length, t.options.Parallel)
	var failed error
	work := func(c *content) {
		for c != nil {
			err := t.segment(plan, c)
			t.mu.Lock()
			if err != nil && failed == nil {
				failed = err
				cancel()
			}
			c = nil
			if failed == nil {
				if begin, end := plan.take(); begin < end {
					c = template.at(ctx, begin, end)
				}
			}
			t.mu.Unlock()
		}
	}
	var escape func()
	guarded := func(c *content) {
		returned := false
		defer func() {
			thrown := recover()
			if returned {
				return
			}
			t.mu.Lock()
			defer t.mu.Unlock()
			failed = errWorkerEnded
			cancel()
			if escape = runtime.Goexit; thrown != nil {
				escape = func() { panic(thrown) }
			}
		}()
		work(c)
		returned = true
	}
	var workers sync.WaitGroup
	contents := []*content{first}
	for range t.options.Parallel - 1 {
		if begin, end := plan.take(); begin < end {
			contents = append(contents, template.at(ctx, begin, end))
		}
	}
	for _, c := range contents {
		workers.Go(func() { guarded(c) })
	}
	workers.Wait()
	if escape != nil {
		escape()
	}
	if failed == nil && plan.whole != plan.total {
		return errWorkerEnded
	}
	return failed
}

var errWorkerEnded = errors.New("a part of the content was not fetched")

// segment reads one segment into its place.
func (t *transfer) segment(plan *plan, c *content) error {
	defer c.Close()
	begin, end, at := c.pos, c.end, c.pos
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	err := fill(c, piece[:], func(piece []byte) error {
		if err := t.write(piece, at); err != nil {
			return err
		}
		at += int64(len(piece))
		t.mu.Lock()
		defer t.mu.Unlock()
		t.wrote(len(piece))
		t.report(c)
		return nil
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(c)
	if err != nil || !plan.finish(begin, end) {
		return err
	}
	t.grown(plan.whole)
	// The bytes are in the file before the note says so.
	if err := t.partial.writeNote(t.source.resource(), t.version, plan.whole); err != nil {
		return fileError("the partial file cannot be kept up", err)
	}
	return nil
}
