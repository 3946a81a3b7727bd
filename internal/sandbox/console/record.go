package console

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

const (
	maxEntries = 1000
	maxBytes   = 32 << 20 // of messages
)

// A record holds the latest requests, and counts all of them.
type record struct {
	entries []*entry // in order of arrival
	bytes   int
	last    int // number of the latest request
	dropped int // requests that made room for others
	changes int
	counts  map[sandbox.Area]*count
}

// A count tells how the requests of an area ended. Those that did not yet are in
// Requests only.
type count struct {
	Requests   int `json:"requests"`
	OK         int `json:"ok"`
	Rejected   int `json:"rejected"` // 4xx but 429
	Limited    int `json:"limited"`  // 429
	Failed     int `json:"failed"`   // 5xx
	Cut        int `json:"cut"`
	Left       int `json:"left"`
	Duplicates int `json:"duplicates"` // of a refund accepted before
}

func newRecord() record {
	r := record{}
	r.clear()
	return r
}

// clear keeps the numbers going, so that no number ever means two requests.
func (r *record) clear() {
	r.entries, r.bytes, r.dropped = nil, 0, 0
	r.changes++
	r.counts = make(map[sandbox.Area]*count)
	for _, area := range []sandbox.Area{sandbox.Bins, sandbox.Refunds, sandbox.Updater, ""} {
		r.counts[area] = &count{}
	}
}

func (r *record) add(e *entry) {
	r.last++
	e.Number = r.last
	e.Group = r.last
	if previous := r.previous(e); previous != nil {
		e.Group, e.Attempt = previous.Group, previous.Attempt+1
	}
	r.entries = append(r.entries, e)
	r.counts[e.Area].Requests++
	r.touch(e)
	r.grow(e.request.size())
}

// patience is how long after its failure a request may still be tried again.
const patience = 5 * time.Minute

// previous returns the attempt that e repeats. Requests carry no attempt number:
// the same one counts as another attempt if the one before had no success, and
// a refund with the same id always.
func (r *record) previous(e *entry) *entry {
	for _, old := range slices.Backward(r.entries) {
		if old.key != e.key {
			continue
		}
		failed := old.State == cut || old.State == left || old.Status == http.StatusTooManyRequests || old.Status >= 500
		if e.isRefund || failed && e.Time.Sub(old.Time) < patience {
			return old
		}
		return nil
	}
	return nil
}

// process notes that the sandbox has processed e.
func (r *record) process(e *entry, valid bool) {
	if !valid || !r.has(e) {
		return
	}
	e.Accepted = true
	r.touch(e)
	if !e.isRefund {
		return
	}
	for _, first := range r.entries {
		if first != e && first.key == e.key && first.Accepted {
			e.DuplicateOf = cmp.Or(first.DuplicateOf, first.Number)
			r.counts[e.Area].Duplicates++
			return
		}
	}
}

func (r *record) finish(e *entry, a *answer, state string) {
	if !r.has(e) {
		return
	}
	e.State, e.Status = state, a.status
	e.DurationMS = float64(time.Since(e.Time).Microseconds()) / 1000
	e.response = message{Header: maskHeader(a.Header()), Bytes: a.sent}
	if a.status == 0 {
		e.response.Header = map[string]string{}
	}
	e.response.show(a.body, answerViews[e.Area])
	e.response.Cut = e.response.Cut || a.sent > int64(len(a.body)) || state != answered
	c := r.counts[e.Area]
	switch {
	case state == cut:
		c.Cut++
	case state == left:
		c.Left++
	case a.status == http.StatusTooManyRequests:
		c.Limited++
	case a.status >= 500:
		c.Failed++
	case a.status >= 400:
		c.Rejected++
	default:
		c.OK++
	}
	r.touch(e)
	r.grow(e.response.size())
}

// has tells whether e is still in the record.
func (r *record) has(e *entry) bool {
	_, found := r.find(e.Number)
	return found
}

func (r *record) find(number int) (*entry, bool) {
	if len(r.entries) == 0 {
		return nil, false
	}
	i := number - r.entries[0].Number
	if i < 0 || i >= len(r.entries) {
		return nil, false
	}
	return r.entries[i], true
}

func (r *record) touch(e *entry) {
	r.changes++
	e.changed = r.changes
}

func (r *record) grow(n int) {
	r.bytes += n
	for len(r.entries) > maxEntries || r.bytes > maxBytes && len(r.entries) > 1 {
		r.bytes -= r.entries[0].request.size() + r.entries[0].response.size()
		r.entries = slices.Delete(r.entries, 0, 1)
		r.dropped++
	}
}

func (m *message) size() int { return len(m.Body) + len(m.Text) }
