package bins

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/bins/internal/match"
	"github.com/carddata/carddata-go/internal/transport"
)

// A lookup is one identifier on its way to its result. It is owned by its request's goroutine
// while the request runs.
type lookup struct {
	sent   string
	result *Result
	err    error
	kept   *response // the response that holds the result; nil: none
	done   bool
	reused bool // the result came from the memory or the cache
	stale  bool // the memory has an expired result
	inputs int  // number of waiting inputs of a bulk lookup
}

// identifier is the card number, token or BIN that is looked up.
func (l *lookup) identifier() string { return l.sent }

// reuse gives a lookup a result from the memory or the cache.
func (l *lookup) reuse(r *Result) { l.result, l.reused = r, true }

// A response is the result of a request for lookups.
type response struct {
	lookups  []*lookup
	found    []int         // index of the item of each lookup; -1: none
	body     *bytes.Buffer // the text of the results; nil: not kept
	values   map[string][]byte
	sent     time.Time // when the service sent it
	attempts int
	unread   int   // members of the items that could not be read
	err      error // fails all lookups
}

// release gives the response's text back.
func (r *response) release() {
	if r.body != nil {
		transport.ReleaseBody(r.body)
	}
	r.body = nil
}

// size is the approximate memory of a response in bytes.
func (r *response) size() int64 { return int64(r.body.Cap() + 500*len(r.lookups)) }

// request sends one request for the lookups and gives each its result. It keeps none.
func (s *store) request(ctx context.Context, c *Client, lookups []*lookup, call transport.Call, settings *transport.Settings) *response {
	r := &response{lookups: lookups}
	request := &LookupRequest{Cards: make([]LookupCard, len(lookups)), Enhanced: s.enhanced}
	sent := make([]string, len(lookups))
	for i, l := range lookups {
		sent[i] = l.sent
		request.Cards[i].Card = Identifier{value: &sent[i]}
	}
	var resp *LookupResponse
	if resp, r.attempts, r.err = c.lookup(ctx, request, call, settings); r.err != nil {
		return r
	}
	for i := range resp.Cards {
		r.unread += len(resp.Cards[i].Unread)
	}
	r.found, r.sent = match.Find(sent, resp.Cards, (*Result).item), time.Now()
	for i, at := range r.found {
		l := lookups[i]
		if at < 0 {
			l.err = s.missing
			continue
		}
		l.result = &resp.Cards[at]
		if l.result.Err != nil {
			l.err = &Error{Operation: s.operation, StatusCode: http.StatusOK, RequestID: resp.RequestID, Attempts: r.attempts, Err: l.result.Err}
		}
	}
	return r
}

// unpack moves the results of a response into the memory.
func (s *store) unpack(r *response) {
	resp, err := decode(r.body.Bytes(), false)
	for i, l := range r.lookups {
		if err == nil && l.kept == r {
			s.memory.keep(s.newEntry(l.sent, &resp.Cards[r.found[i]], r.sent))
		}
	}
}
