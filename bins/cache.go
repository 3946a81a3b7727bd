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
// Implement it, as examples/fleet does for Redis, and set it in [LoaderOptions] or
// [BulkOptions]. Values are opaque: store and return them unchanged. A key is made from an
// identifier and Enhanced: prefix keys where several services, such as test and
// production, share a store. Only items with a card are stored.
//
// A failing cache costs requests, never a result. An error of Get means that nothing
// was found, and an error of Set that nothing was stored. Each loader and bulk lookup
// makes one call at a time. The context of a call ends after 50 milliseconds, or after a
// tenth of the time left until the caller's deadline if that is less. After a failure or
// a timeout the cache is skipped for one second, and for twice as long after each further
// failure, up to 30 seconds. A cache that ignores its context holds one goroutine, and is
// not called again until it returns. A panic of Get reaches the caller; a panic of Set
// counts as a failure.
//
// A result from a Cache is kept in memory for a TTL of its own, so it can be served for
// twice the TTL before it counts as expired. Expired results are kept in memory only: a
// process that starts during an outage has none to serve.
//
// A Cache never gets a full card number, neither in a key nor in a value. Values leave
// out pan_or_token and correlation_id, and a BIN that may be a card number. An item
// that may have a card number in any other field is not stored; only bank.phone and the
// bounds of BIN ranges are not checked.
type Cache interface {
	// Get returns the values of the keys that it has, of the 1 to 50 given.
	Get(ctx context.Context, keys []string) (map[string][]byte, error)
	// Set stores 1 to 50 values for ttl.
	Set(ctx context.Context, values map[string][]byte, ttl time.Duration) error
}

// CacheOptions configure a [MemoryCache]. The zero value is a good choice.
type CacheOptions struct {
	// Entries is the most results kept. A result takes about 300 bytes if issuers,
	// products and costs repeat, and about 2 KB if nothing does. Results of more than 8
	// KB are not kept. Results that were not used recently are dropped first. Zero is
	// 100,000.
	Entries int
	// TTL is how long a result is kept, less up to a tenth at random, so that results
	// stored together do not expire together. Zero is 24 hours.
	TTL time.Duration
	// StaleFor is how long a result may still be served after its TTL has ended, marked
	// as [Result.Stale]. Zero serves no expired results.
	//
	// A [Loader] returns an expired result at once, and renews it in the background. So
	// with 24 hours, an outage of a day does not keep it from serving the cards in its
	// cache, and no caller waits for a renewal. A bulk lookup waits for its request,
	// and uses an expired result only if the service fails.
	StaleFor time.Duration
	// NegativeTTL is the TTL of items without a card. They are kept in memory only,
	// whatever their error says. Zero is one hour. Below zero they are not kept: choose
	// that if the items of your service report temporary failures.
	NegativeTTL time.Duration
}

// A MemoryCache keeps results in memory. The zero value is ready for use, with the
// default options. It is safe for concurrent use, and any number of loaders and bulk
// lookups may share it, so that none asks for a result that another has got. Use one for
// each service, because results are told apart by identifier and Enhanced alone. Do not
// copy it.
//
// A result is kept by its identifier, unless that has 12 digits or more and so may be a
// card number. With [BulkOptions.Ranges] a result is kept by its BIN range, which serves
// card numbers too. pan_or_token and correlation_id belong to one card, so they are not
// kept: both are empty in a reused result.
type MemoryCache struct {
	given CacheOptions

	mu      sync.Mutex
	ids     [3]map[string]*entry // by enhancement
	ranges  [3]rangeIndex        // by enhancement
	recency list.List            // of *entry, the most recently used first
	stats   CacheStats           // but for Entries
}

// CacheStats count what a [MemoryCache] has done so far.
type CacheStats struct {
	Entries   int   // results in the cache
	Hits      int64 // identifiers found
	Misses    int64 // identifiers not found
	Evictions int64 // results dropped to make room for others
	Conflicts int64 // see [MemoryCache.Conflicts]
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

// Len returns how many results are kept.
func (m *MemoryCache) Len() int { return m.Stats().Entries }

// Conflicts returns how many BIN ranges lie inside another range and have a different
// result; the narrower range is then used. If it is above zero, not all cards of a range
// have the same result, so [BulkOptions.Ranges] is not safe with this service. A conflict
// is counted when an identifier in both ranges is looked up.
func (m *MemoryCache) Conflicts() int64 { return m.Stats().Conflicts }

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
func (m *MemoryCache) find(key cacheKey, byRange bool, expired time.Duration) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.ids[key.enhanced][key.id]
	if byRange && !e.isUsable(expired) {
		if numbers := spanOf(key.id); numbers.ok {
			e = m.countConflict(m.ranges[key.enhanced].find(numbers.first, len(key.id)))
		}
	}
	if !e.isUsable(expired) {
		m.stats.Misses++
		return nil
	}
	m.stats.Hits++
	m.recency.MoveToFront(e.recency)
	return e
}

// countConflict counts each entry once, and returns it.
func (m *MemoryCache) countConflict(e, contradicted *entry) *entry {
	if contradicted != nil && !e.conflicts {
		e.conflicts = true
		m.stats.Conflicts++
	}
	return e
}

// keep takes entries in; those that are nil are not to be kept. Entries of one
// request come together, because many goroutines that each lock for one would
// wait for each other.
func (m *MemoryCache) keep(entries ...*entry) {
	capacity := m.options().Entries
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range entries {
		if e != nil {
			m.insert(e)
		}
	}
	for m.recency.Len() > capacity {
		m.evict(m.recency.Back().Value.(*entry))
	}
}

func (m *MemoryCache) insert(e *entry) {
	ids, ranges := m.ids[e.enhanced], &m.ranges[e.enhanced]
	var replaced *entry
	switch {
	case e.isRange():
		if replaced = ranges.insert(e); replaced != nil && !replaced.same(e) {
			m.countConflict(e, replaced)
		}
		m.countConflict(ranges.find(e.low, rangeDigits))
	case ids == nil:
		m.ids[e.enhanced] = map[string]*entry{e.id: e}
	default:
		replaced, ids[e.id] = ids[e.id], e
	}
	if replaced != nil {
		m.recency.Remove(replaced.recency)
	}
	e.recency = m.recency.PushFront(e)
}

func (m *MemoryCache) evict(e *entry) {
	if e.isRange() {
		m.ranges[e.enhanced].remove(e)
	} else {
		delete(m.ids[e.enhanced], e.id)
	}
	m.recency.Remove(e.recency)
	m.stats.Evictions++
}

// jittered shortens a time to live by up to a tenth.
func jittered(ttl time.Duration) time.Duration { return ttl - rand.N(ttl/10+1) }
