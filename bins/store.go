package bins

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/internal/transport"
)

// A store is where bulk lookups and loaders find and keep results: in memory
// first, then in the caller's cache.
type store struct {
	operation string // for errors
	memory    *MemoryCache
	remote    *remoteCache // nil: none
	enhanced  *bool
	ranges    bool
	missing   error // of a card that a response leaves out
}

func newStore(operation string, memory *MemoryCache, entries int, remote Cache, enhanced *bool, ranges bool) *store {
	if memory == nil {
		memory = NewMemoryCache(CacheOptions{Entries: entries})
	}
	return &store{
		operation: operation, memory: memory, remote: newRemoteCache(remote), enhanced: enhanced, ranges: ranges,
		missing: &Error{Operation: operation, Err: transport.NewError(ErrMissing.Error(), ErrMissing)},
	}
}

// A lookup is one identifier on its way to its result. It belongs to the goroutine
// of its request for as long as that lasts.
type lookup struct {
	sent   string
	result *Result
	err    error
	kept   *response // from which the result can be read again; nil: none
	done   bool
	reused bool // the result was there already
	inputs int  // of a bulk lookup, that wait for it
}

// reuse gives a lookup a result that was there already.
func (l *lookup) reuse(r *Result) { l.result, l.reused = r, true }

func (s *store) key(id string) cacheKey { return cacheKey{id, enhancementOf(s.enhanced)} }

// find returns what the memory has for an identifier, or nil.
func (s *store) find(id string) *entry { return s.memory.find(s.key(id), s.ranges, 0) }

// findStale returns what the memory has for an identifier, or had a while ago, or nil.
func (s *store) findStale(id string) *entry {
	return s.memory.find(s.key(id), s.ranges, s.memory.options().StaleFor)
}

// fetch looks lookups up in the caller's cache, and returns those that it does not
// have.
func (s *store) fetch(ctx context.Context, lookups []*lookup) (missed []*lookup) {
	if s.remote == nil {
		return lookups
	}
	var keys []string
	for _, l := range lookups {
		if !mayBeCardNumber(l.sent) {
			keys = append(keys, s.key(l.sent).String())
		}
	}
	if len(keys) == 0 {
		return lookups
	}
	values := s.remote.get(ctx, keys)
	for _, l := range lookups {
		var r Result
		if json.Unmarshal(values[s.key(l.sent).String()], &r) != nil || !r.hasCard() || r.Error != "" {
			missed = append(missed, l)
			continue
		}
		s.memory.keep(s.pack(l.sent, &r))
		r.forgetCard(l.sent)
		l.reuse(&r)
	}
	return missed
}

// keep keeps the results of lookups in memory, and returns what share is to keep in the
// caller's cache.
func (s *store) keep(lookups []*lookup) map[string][]byte {
	var entries []*entry
	values := map[string][]byte{}
	for _, l := range lookups {
		if l.result == nil || l.err != nil {
			continue
		}
		entries = append(entries, s.pack(l.sent, l.result))
		if s.remote == nil || mayBeCardNumber(l.sent) {
			continue
		}
		if value := remoteValue(l.result); value != nil {
			values[s.key(l.sent).String()] = value
		}
	}
	s.memory.keep(entries...)
	return values
}

// share keeps values in the caller's cache.
func (s *store) share(ctx context.Context, values map[string][]byte) {
	if len(values) > 0 {
		s.remote.set(context.WithoutCancel(ctx), values, jittered(s.memory.options().TTL))
	}
}

func (s *store) pack(id string, r *Result) *entry { return s.memory.pack(s.key(id), r, s.ranges) }

// A response is what a request for lookups came to.
type response struct {
	lookups  []*lookup
	found    []int         // the item of each; -1: none
	body     *bytes.Buffer // from which results can be read again; nil: not kept
	values   map[string][]byte
	attempts int
	err      error // of all lookups
}

// size is about what a response takes in memory, in bytes.
func (r *response) size() int64 { return int64(r.body.Cap() + 500*len(r.lookups)) }

var errPanicked = transport.NewError("a function of the caller's panicked, or ended its goroutine")

// request asks for the lookups in one request, and gives each its result. It keeps none.
func (s *store) request(ctx context.Context, c *Client, lookups []*lookup, call transport.Call, opts []Option) *response {
	r := &response{lookups: lookups}
	request := &LookupRequest{Cards: make([]LookupCard, len(lookups)), Enhanced: s.enhanced}
	sent := make([]string, len(lookups))
	for i, l := range lookups {
		sent[i] = l.sent
		request.Cards[i].Card = Identifier{value: &sent[i]}
	}
	var resp *LookupResponse
	if resp, r.attempts, r.err = c.lookup(ctx, request, call, opts); r.err != nil {
		return r
	}
	r.found = correlate(sent, resp.Cards)
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
	resp, err := decode(r.body.Bytes(), false, len(r.lookups), nil)
	for i, l := range r.lookups {
		if err == nil && l.kept == r {
			s.memory.keep(s.pack(l.sent, &resp.Cards[r.found[i]]))
		}
	}
}

// forgetCard removes what belongs to the one card that was asked for, so that the
// result can be that of another one.
func (r *Result) forgetCard(id string) {
	if !strings.HasPrefix(id, r.BIN) {
		r.BIN = ""
	}
	if r.hasCard() {
		r.Data.Card.PANOrToken, r.Data.Card.CorrelationID = Identifier{}, ""
	}
}

// clone returns a copy that shares nothing that can be written to.
func (r Result) clone() Result {
	if r.Data != nil {
		r.Data = &Data{Card: r.Data.Card}
	}
	if r.hasCard() {
		card := *r.Data.Card
		card.AdditionalCardBrands = slices.Clone(card.AdditionalCardBrands)
		card.NetworkFees = slices.Clone(card.NetworkFees)
		r.Data.Card = &card
	}
	r.Raw = slices.Clone(r.Raw)
	return r
}
