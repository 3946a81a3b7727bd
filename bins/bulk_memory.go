package bins

import (
	"bytes"
	"sync/atomic"
)

// A memory finds the results of a bulk lookup for identifiers that repeat. It holds the
// lookups in progress, the text of recent responses and, in the store, the packed results.
//
// Packing a result costs more than reading it, and in most bulk lookups all identifiers are
// different. So the memory first keeps responses as text. When an identifier of one of them
// repeats, it packs that response, and from then on every result.
type memory struct {
	*store
	always  bool               // every new result is packed
	lookups map[string]*lookup // by identifier, while inputs wait or the response is kept
	pending int                // number of lookups that inputs wait for
	kept    []*response        // the oldest first
	size    atomic.Int64       // bytes of kept responses, and of those that the loop has not taken yet

	inputs, repeats int // counts so far
}

// maxKept is the maximum number of bytes of responses kept as text.
const maxKept = 2 << 20

// find returns a lookup in progress or a result for an identifier, if there is one.
func (m *memory) find(id string) (l *lookup, known *entry) {
	m.inputs++
	if l = m.lookups[id]; l != nil && l.inputs == 0 {
		m.unpack(l.kept)
		m.drop(l.kept)
		l = nil
	}
	if l == nil {
		known = m.store.find(id)
	}
	if l != nil || known != nil {
		m.repeats++
	}
	return l, known
}

// begin adds a lookup that inputs wait for.
func (m *memory) begin(id string) *lookup {
	l := &lookup{sent: id}
	m.lookups[id] = l
	m.pending++
	return l
}

// leave is called when an input stops waiting for a lookup. It reports whether it was the
// last input.
func (m *memory) leave(l *lookup) (last bool) {
	if l.inputs--; l.inputs > 0 {
		return false
	}
	m.pending--
	if l.kept == nil {
		delete(m.lookups, l.sent)
	}
	return true
}

// packs reports whether new results are packed.
func (m *memory) packs() bool { return m.always || m.repeats > m.inputs/16 }

// take packs a request's results, or keeps their text. It runs on the request's goroutine.
func (m *memory) take(r *response, body *bytes.Buffer, packs bool) {
	r.body = body
	switch {
	case packs:
		r.values = m.store.keep(r.lookups)
		r.release()
	case body != nil && m.size.Add(r.size()) > 2*maxKept: // the loop is behind
		m.size.Add(-r.size())
		r.release()
	}
}

// keep keeps the text of a response, and drops the oldest ones.
func (m *memory) keep(r *response) {
	if r.body == nil {
		return
	}
	for _, l := range r.lookups {
		if l.err == nil && !mayBeCardNumber(l.sent) {
			l.kept = r
		}
	}
	m.kept = append(m.kept, r)
	for ; m.size.Load() > maxKept && len(m.kept) > 0; m.kept = m.kept[1:] {
		m.drop(m.kept[0])
	}
}

// drop gives up the text of a response.
func (m *memory) drop(r *response) {
	if r.body == nil {
		return
	}
	for _, l := range r.lookups {
		if l.kept != r {
			continue
		}
		if l.kept = nil; l.inputs == 0 {
			delete(m.lookups, l.sent)
		}
	}
	m.size.Add(-r.size())
	r.release()
}
