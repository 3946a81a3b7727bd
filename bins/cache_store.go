package bins

import (
	"context"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// A store finds and keeps the results of bulk lookups and loaders: first in memory, then in
// the caller's cache.
type store struct {
	operation string // for errors
	memory    *MemoryCache
	remote    *remoteCache // nil: none
	enhanced  *bool
	keys      string // what all keys begin with
	missing   error  // the error of a card that a response leaves out
	// Use an expired result at once, and not only if the service fails.
	staleFirst bool
}

func newStore(operation string, memory *MemoryCache, remote Cache, enhanced *bool) *store {
	if memory == nil {
		memory = new(MemoryCache)
	}
	keys := "bin4:d:" // another form of the values, or another state of Enhanced, has other keys
	switch {
	case enhanced == nil:
	case *enhanced:
		keys = "bin4:e:"
	default:
		keys = "bin4:p:"
	}
	return &store{
		operation: operation, memory: memory, remote: newRemoteCache(remote), enhanced: enhanced, keys: keys,
		missing: &Error{Operation: operation, Err: fault.NewError(ErrMissing.Error(), ErrMissing)},
	}
}

// key is the key of an identifier's result in both caches.
func (s *store) key(id string) string { return s.keys + id }

// find returns the memory's result for an identifier, or nil.
func (s *store) find(id string) *entry { return s.memory.find(s.key(id), 0) }

// findStale returns the memory's result for an identifier, even an expired one, or nil.
func (s *store) findStale(id string) *entry {
	return s.memory.find(s.key(id), s.memory.options().StaleFor)
}

// fetch looks lookups up in the caller's cache, and returns those that need a request. It
// puts an expired result into the memory.
func (s *store) fetch(ctx context.Context, lookups []*lookup) (missed []*lookup) {
	if s.remote == nil {
		return lookups
	}
	var keys []string
	for _, l := range lookups {
		if !mayBeCardNumber(l.sent) {
			keys = append(keys, s.key(l.sent))
		}
	}
	if len(keys) == 0 {
		return lookups
	}
	o := s.memory.options()
	values := s.remote.get(ctx, keys)
	for _, l := range lookups {
		key := s.key(l.sent)
		r, sent, ok := readValue(key, values[key])
		if !ok {
			missed = append(missed, l)
			continue
		}
		e := s.newEntry(l.sent, &r, sent)
		switch {
		case time.Since(sent) < jittered(o.TTL):
			s.memory.keep(e)
			l.reuse(&r)
			continue
		case e.isUsable(o.StaleFor) && s.findStale(l.sent) == nil:
			s.memory.keep(e)
			if l.stale = s.staleFirst; l.stale {
				continue
			}
		}
		missed = append(missed, l)
	}
	return missed
}

// keep keeps the results of lookups in memory, and returns the values that share must store
// in the caller's cache.
func (s *store) keep(lookups []*lookup) map[string][]byte {
	var entries []*entry
	values, now := map[string][]byte{}, time.Now()
	for _, l := range lookups {
		if l.result == nil || l.err != nil {
			continue
		}
		e := s.newEntry(l.sent, l.result, now)
		entries = append(entries, e)
		if s.remote != nil && e != nil && e.known {
			values[e.key] = newValue(e.key, &e.kept, now)
		}
	}
	s.memory.keep(entries...)
	return values
}

// share stores values in the caller's cache.
func (s *store) share(ctx context.Context, values map[string][]byte) {
	if o := s.memory.options(); len(values) > 0 {
		s.remote.set(context.WithoutCancel(ctx), values, jittered(o.TTL)+o.StaleFor)
	}
}

// newEntry makes an entry from a result that the service sent at some time, or returns nil if caches
// must not keep it. An item that has neither a card nor an error because they could not be read is
// asked for again.
func (s *store) newEntry(id string, r *Result, sent time.Time) *entry {
	e := &entry{key: s.key(id), kept: r.clone()}
	e.kept.forgetCard(id)
	e.known = e.kept.isKnown()
	isUnclear := !e.known && r.Error == "" && r.Unread != nil
	size, mayHoldNumber := e.kept.inspect()
	if mayBeCardNumber(id) || isUnclear || mayHoldNumber {
		return nil
	}
	e.size = entryBytes + size
	o := s.memory.options()
	ttl := o.NegativeTTL
	if e.known {
		ttl = o.TTL
	}
	e.expires = sent.Add(jittered(ttl)).UnixNano()
	return e
}
