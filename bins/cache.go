package bins

import (
	"cmp"
	"container/list"
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// A Cache stores results outside this process, such as in a Redis that replicas share.
// Implement it, as examples/engines/redis does, and set it in [LoaderOptions] or
// [BulkOptions]. Prefix the keys where several services, such as test and production, share a
// store. A value that is damaged or too old costs a request, and is not used.
//
// A failing cache costs requests, and never a result. Each loader and bulk lookup makes one call
// at a time, for 50 milliseconds at most. A Load with a deadline waits no longer than a tenth of the
// time that is left: with 80 milliseconds, the cache has to answer within 8. After an error, 50
// milliseconds without an answer, or five shorter calls without one, the cache is skipped for a
// second, and for twice as long after each further failure, up to 30 seconds. Results of that time
// are not stored in it. If it ignores its context, it is not called again until it returns. A panic of
// Get reaches the caller.
//
// Only items with a card and without an error are stored. A Cache gets no full card number:
// pan_or_token, correlation_id and a bin that may be a card number are left out, and an item that
// may have one in another field, whole or in groups, is not stored. Not found is a number that the
// service spreads over several values. Not checked are bank.phone and the bounds of BIN ranges.
type Cache interface {
	// Get returns the values of the keys that it has, of the 1 to 50 given.
	Get(ctx context.Context, keys []string) (map[string][]byte, error)
	// Set stores 1 to 50 values for ttl, the sum of TTL and StaleFor of [CacheOptions].
	Set(ctx context.Context, values map[string][]byte, ttl time.Duration) error
}

// CacheOptions configure a [MemoryCache]. The zero value is a good choice, but serves no card
// through an outage.
type CacheOptions struct {
	// Entries is the most results kept: the least recently used is dropped first. A result
	// takes about 300 bytes, about 200 more for each additional brand, and up to 8 KB if its
	// issuer, product and cost do not repeat.
	// Zero is 100,000.
	Entries int
	// TTL is how long a result is kept, less up to a tenth at random. Zero is 24 hours.
	TTL time.Duration
	// StaleFor is how long a card may still be served after its TTL, marked as
	// [Result.Stale]. Zero serves no expired cards. A [Loader] returns an expired card at
	// once and renews it in the background. A bulk lookup uses it for a card that has no
	// result in the end, because the service failed. Until StaleFor has passed, an item without
	// a card, or with an error, does not replace the card.
	StaleFor time.Duration
	// NegativeTTL is the TTL of items with an error, or without a card that states anything,
	// which are kept in memory only. Zero is one hour. Below zero they are not kept: choose that
	// if the items of your service report temporary failures.
	NegativeTTL time.Duration
}

// A MemoryCache keeps results in memory. The zero value is ready for use, with the default
// options. Loaders and bulk lookups may share it. Use one for each service, because results
// are told apart by identifier and Enhanced alone. Do not copy it.
//
// Nothing is kept under an identifier with 12 digits or more, which may be a card number.
// pan_or_token and correlation_id belong to one card, and are not kept either.
type MemoryCache struct {
	given CacheOptions

	mu      sync.Mutex
	entries map[cacheKey]*entry
	recency list.List  // of *entry, the most recently used first
	stats   CacheStats // but for Entries
}

// CacheStats count what a [MemoryCache] has done so far.
type CacheStats struct {
	Entries   int   // results in the cache
	Hits      int64 // identifiers found
	Misses    int64 // identifiers not found
	Evictions int64 // results dropped to make room for others
}

// NewMemoryCache returns an empty cache.
func NewMemoryCache(o CacheOptions) *MemoryCache { return &MemoryCache{given: o} }

// Stats returns what the cache has done so far.
func (m *MemoryCache) Stats() CacheStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := m.stats
	stats.Entries = m.recency.Len()
	return stats
}

const defaultEntries = 100_000

// maxTTL is for ever, and can be added to the time.
const maxTTL = 10 * 365 * 24 * time.Hour

func (m *MemoryCache) options() CacheOptions {
	o := m.given
	o.Entries = cmp.Or(max(0, o.Entries), defaultEntries)
	o.TTL = min(cmp.Or(max(0, o.TTL), 24*time.Hour), maxTTL)
	o.NegativeTTL = min(cmp.Or(o.NegativeTTL, time.Hour), maxTTL)
	o.StaleFor = max(0, o.StaleFor)
	return o
}

// find returns the entry for an identifier, or nil. One that has expired for no longer
// than this may be returned as well.
func (m *MemoryCache) find(key cacheKey, expired time.Duration) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[key]
	if !e.isUsable(expired) {
		m.stats.Misses++
		return nil
	}
	m.stats.Hits++
	m.recency.MoveToFront(e.recency)
	return e
}

// keep takes entries in; those that are nil are not to be kept. Entries of one
// request come together, because many goroutines that each lock for one would
// wait for each other.
func (m *MemoryCache) keep(entries ...*entry) {
	o := m.options()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range entries {
		if e != nil {
			m.insert(e, o.StaleFor)
		}
	}
	for m.recency.Len() > o.Entries {
		m.evict(m.recency.Back().Value.(*entry))
	}
}

// insert takes an entry in, unless it would take a known card away. Then the service is not
// asked again for as long as the entry would have been kept.
func (m *MemoryCache) insert(e *entry, staleFor time.Duration) {
	replaced := m.entries[e.key]
	if replaced.isUsable(staleFor) && replaced.known && !e.known {
		replaced.asked.Store(max(e.expires, time.Now().Add(time.Second).UnixNano()))
		return
	}
	if !e.isUsable(staleFor) {
		return
	}
	if replaced != nil {
		m.recency.Remove(replaced.recency)
	}
	if m.entries == nil {
		m.entries = map[cacheKey]*entry{}
	}
	m.entries[e.key] = e
	e.recency = m.recency.PushFront(e)
}

func (m *MemoryCache) evict(e *entry) {
	delete(m.entries, e.key)
	m.recency.Remove(e.recency)
	m.stats.Evictions++
}

// jittered shortens a time to live by up to a tenth.
func jittered(ttl time.Duration) time.Duration { return ttl - rand.N(ttl/10+1) }
