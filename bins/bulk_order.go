package bins

import "slices"

// An inputOrder holds the inputs of a bulk lookup until their results are yielded, and
// decides the order of the results.
type inputOrder struct {
	unordered bool
	waiting   []waitingInput // in the order of their results
	settled   bool           // a lookup has ended since the inputs were last sorted
}

// A waitingInput has its result in memory, or a lookup that will bring it.
type waitingInput struct {
	index  int
	input  string
	known  *entry
	lookup *lookup
	first  bool // this input made the lookup necessary
}

func (w *waitingInput) isReady() bool { return w.known != nil || w.lookup.done }

// add adds an input.
func (o *inputOrder) add(w waitingInput) {
	if len(o.waiting) == cap(o.waiting) { // the front is dropped continuously, so grow in larger steps than append would
		o.waiting = slices.Grow(o.waiting, len(o.waiting)+MaxCards)
	}
	o.waiting = append(o.waiting, w)
	if last := len(o.waiting) - 1; o.unordered && w.isReady() {
		o.waiting[0], o.waiting[last] = w, o.waiting[0]
	}
}

// end ends a lookup. The inputs that wait for it are then ready.
func (o *inputOrder) end(l *lookup) { l.done, o.settled = true, true }

// isReady reports whether a result can be yielded.
func (o *inputOrder) isReady() bool {
	if o.unordered && o.settled {
		ready := 0
		for i := range o.waiting {
			if o.waiting[i].isReady() {
				o.waiting[ready], o.waiting[i] = o.waiting[i], o.waiting[ready]
				ready++
			}
		}
	}
	o.settled = false
	return len(o.waiting) > 0 && o.waiting[0].isReady()
}

// next removes the next input that is ready.
func (o *inputOrder) next() waitingInput {
	w := o.waiting[0]
	o.waiting[0] = waitingInput{} // otherwise the array would keep its result
	o.waiting = o.waiting[1:]
	return w
}
