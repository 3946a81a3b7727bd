package console

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// maxEntries bounds the record: with 16 KiB of each body, it is at most 32 MiB.
const maxEntries = 1000

// A record holds the latest requests, and counts all of them.
type record struct {
	entries []*entry // in order of arrival
	last    int      // number of the latest request
	dropped int      // requests that are no longer kept
	changes int
	counts  map[sandbox.Area]*count
}

// A count has the number of requests of an area by how they ended. Requests counts those
// in progress too.
type count struct {
	Requests   int `json:"requests"`
	OK         int `json:"ok"`
	Rejected   int `json:"rejected"` // 4xx except 429
	Limited    int `json:"limited"`  // 429
	Failed     int `json:"failed"`   // 5xx
	Cut        int `json:"cut"`
	Left       int `json:"left"`
	Duplicates int `json:"duplicates"` // of a refund accepted before
	Refused    int `json:"refused"`    // by the sandbox itself
}

func newRecord() record {
	r := record{}
	r.clear()
	return r
}

// clear does not start the numbers again, so that no two requests have the same.
func (r *record) clear() {
	r.entries, r.dropped = nil, 0
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
	if len(r.entries) > maxEntries {
		r.entries = slices.Delete(r.entries, 0, 1)
		r.dropped++
	}
}

// patience is how long after its failure a request can have another attempt.
const patience = 5 * time.Minute

// previous returns the attempt before e. Requests carry no attempt number: the same
// request is another attempt if the one before failed, and a refund with the same id
// always is.
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

func (r *record) finish(e *entry, a *response, state string) {
	if !r.has(e) {
		return
	}
	e.State, e.Status = state, a.status
	e.DurationMS = float64(time.Since(e.Time).Microseconds()) / 1000
	e.response = message{Header: maskHeader(a.Header()), Bytes: a.sent}
	if a.status == 0 {
		e.response.Header = map[string]string{}
	}
	e.response.show(a.body, responseViews[e.Area])
	e.response.Cut = e.response.Cut || a.sent > int64(len(a.body)) || state != complete
	if e.Fault == "" && a.status >= 400 {
		e.Refused = cmp.Or(a.reason(), "status "+strconv.Itoa(a.status))
	}
	c := r.counts[e.Area]
	if e.Refused != "" {
		c.Refused++
	}
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

// An entry is what the record shows of a request. All of it is masked.
type entry struct {
	Number      int          `json:"number"` // from 1, in order of arrival
	Group       int          `json:"group"`  // the number of the first attempt
	Attempt     int          `json:"attempt"`
	Time        time.Time    `json:"time"`
	Area        sandbox.Area `json:"area,omitempty"` // "": of no area
	Method      string       `json:"method"`
	Path        string       `json:"path"`
	Cards       []string     `json:"cards,omitempty"` // the first of them
	CardCount   int          `json:"card_count,omitempty"`
	RefundID    string       `json:"refund_id,omitempty"`
	Fault       string       `json:"fault,omitempty"`
	State       string       `json:"state"`
	Status      int          `json:"status,omitempty"`
	DurationMS  float64      `json:"duration_ms"`
	Accepted    bool         `json:"accepted"` // processed, even if the caller got no response
	DuplicateOf int          `json:"duplicate_of,omitempty"`
	// Contract lists the differences between body and interface.
	Contract []sandbox.Finding `json:"contract,omitempty"`
	// Refused is why the sandbox itself refused the request.
	Refused string `json:"refused,omitempty"`
	// Library is what this library makes of the response.
	Library *verdict `json:"library,omitempty"`

	request, response message
	key               [sha256.Size]byte // the same for all attempts
	isRefund          bool              // with an id
	changed           int
}

// A message is a request or a response in detail.
type message struct {
	Header map[string]string `json:"header"`
	Body   json.RawMessage   `json:"body,omitempty"`
	Text   string            `json:"text,omitempty"` // in place of a body that is not whole JSON
	Bytes  int64             `json:"bytes"`
	Cut    bool              `json:"cut,omitempty"` // not all is shown
}

// A detail is an entry with its messages.
type detail struct {
	entry
	Request  message `json:"request"`
	Response message `json:"response"`
}

const (
	shownCards = 3
	maxBody    = 1 << 20 // as much as a sandbox reads
)

// newEntry returns the masked entry of a request with that body.
func newEntry(r *http.Request, body []byte, now time.Time) *entry {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	e := &entry{
		Attempt: 1,
		Time:    now.UTC(),
		Area:    sandbox.AreaOf(r),
		Method:  word(r.Method),
		Path:    maskPath(path),
		State:   open,
		request: message{Header: maskHeader(r.Header), Bytes: int64(len(body))},
	}
	var same []byte // as in all attempts
	switch e.Area {
	case sandbox.Bins:
		var lookup struct{ Cards []struct{ Card string } }
		json.Unmarshal(body, &lookup)
		e.CardCount = len(lookup.Cards)
		for _, c := range lookup.Cards[:min(shownCards, e.CardCount)] {
			e.Cards = append(e.Cards, mask.Identifier(c.Card))
		}
		same = body
	case sandbox.Refunds:
		var refund map[string]json.RawMessage
		var id string
		json.Unmarshal(body, &refund)
		json.Unmarshal(refund["refund_id"], &id)
		e.RefundID, e.isRefund = text(id), id != ""
		if same = body; e.isRefund {
			same = []byte(id)
		}
	case sandbox.Updater:
		same = []byte(r.Header.Get("X-Merchant-Id"))
	}
	e.key = keyOf(r.Method, r.URL.Path, same)
	e.request.show(body, requestViews[e.Area])
	if r.Method == http.MethodPost {
		e.Contract = sandbox.CheckBody(e.Area, body)
		for i := range e.Contract {
			maskFinding(&e.Contract[i])
		}
	}
	return e
}

// keyOf is the key of all attempts at a request.
func keyOf(method, path string, same []byte) [sha256.Size]byte {
	return sha256.Sum256(bytes.Join([][]byte{[]byte(method), []byte(path), same}, []byte{0}))
}

// contains reports whether e shows the text q, which is in lower case.
func (e entry) contains(q string) bool {
	if q == "" {
		return true
	}
	shown, err := json.Marshal(detail{e, e.request, e.response})
	return err == nil && strings.Contains(strings.ToLower(string(shown)), q)
}
