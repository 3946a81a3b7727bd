package bins

import (
	"cmp"
	"container/list"
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// A Cache stores results outside this process, such as in a Redis that replicas share:
// examples/engines/redis is one. If several services, such as test and production, share a store,
// prefix the keys. Only items with a card and without an error are stored, as JSON, without card
// numbers: see [MemoryCache].
//
// A failing cache costs requests, and never a result. Each loader and bulk lookup makes one call at a
// time, for 50 milliseconds at most, and for a tenth of the time that a Load has left. After five
// failures in a row the cache is skipped, for a second at first and 30 seconds at most.
type Cache interface {
	// Get returns the values that it has of 1 to 50 keys.
	Get(ctx context.Context, keys []string) (map[string][]byte, error)
	// Set stores 1 to 50 values for ttl, the sum of TTL and StaleFor of [CacheOptions].
	Set(ctx context.Context, values map[string][]byte, ttl time.Duration) error
}

// CacheOptions configure a [MemoryCache]. The zero value serves no card through an outage.
type CacheOptions struct {
	// MaxBytes bounds the memory: the least recently used result is dropped first. A result
	// takes 1.3 to 2.5 KB. Zero is 64 MiB.
	MaxBytes int64
	// TTL is how long a result is kept, less up to a tenth at random. Zero is 24 hours.
	TTL time.Duration
	// StaleFor is how long after its TTL a card may still be served, marked as [Result.Stale]. A [Loader]
	// serves it at once, and renews it in the background. LookupAll serves it if the service failed.
	// An item without a card does not replace it. Zero is not at all.
	StaleFor time.Duration
	// NegativeTTL is the TTL of items with an error or without a card, which only the memory keeps. Zero
	// is one hour. Below zero they are not kept: choose that if such items report temporary failures.
	NegativeTTL time.Duration
}

// A MemoryCache keeps results in memory. Loaders and bulk lookups of one service may share it. The zero
// value has the default options. Do not copy it.
//
// It holds no full card number, nor does a [Cache]. They keep nothing under an identifier with 12 digits or
// more, no pan_or_token, no correlation_id, and no item with what may be a card number in another field.
// Bank.Phone and the bounds of BIN ranges are not checked for one.
type MemoryCache struct {
	given CacheOptions

	mu      sync.Mutex
	entries map[string]*list.Element // of *entry, by key
	recency list.List                // the most recently used first
	stats   CacheStats               // but for Entries
}

// CacheStats count what a [MemoryCache] has done.
type CacheStats struct {
	Entries   int   // results in the cache
	Bytes     int64 // that they take
	Hits      int64 // identifiers found
	Misses    int64 // identifiers not found
	Evictions int64 // results dropped to make room for others
}

// NewMemoryCache returns an empty cache.
func NewMemoryCache(o CacheOptions) *MemoryCache { return &MemoryCache{given: o} }

// Stats returns what the cache has done.
func (m *MemoryCache) Stats() CacheStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := m.stats
	stats.Entries = m.recency.Len()
	return stats
}

// maxTTL is for ever, and can be added to the time.
const maxTTL = 10 * 365 * 24 * time.Hour

func (m *MemoryCache) options() CacheOptions {
	o := m.given
	o.MaxBytes = cmp.Or(max(0, o.MaxBytes), 64<<20)
	o.TTL = min(cmp.Or(max(0, o.TTL), 24*time.Hour), maxTTL)
	o.NegativeTTL = max(0, min(cmp.Or(o.NegativeTTL, time.Hour), maxTTL))
	o.StaleFor = max(0, o.StaleFor)
	return o
}

// An entry is a result in memory. It is kept as it is yielded, because a job whose identifiers
// repeat would take twice as long if it read JSON each time.
type entry struct {
	key     string
	kept    Result
	size    int64        // in bytes
	expires int64        // in nanoseconds since 1970; a time.Time takes three times the memory
	known   bool         // see Result.isKnown
	asked   atomic.Int64 // to renew it: no further try before this time
}

// entryBytes is what an entry takes without texts, in the map and the list, too.
var entryBytes = int64(reflect.TypeFor[entry]().Size()+reflect.TypeFor[Card]().Size()) + 200

// isUsable reports whether an entry is valid, or expired for less than the given time. An
// expired entry without a known card is never usable.
func (e *entry) isUsable(expired time.Duration) bool {
	if e == nil {
		return false
	}
	if !e.known {
		expired = 0
	}
	return time.Now().UnixNano()-int64(expired) < e.expires
}

// result returns the result, as a copy for the caller.
func (e *entry) result() Result { return e.kept.clone() }

// find returns the entry for an identifier, or nil. One that has expired for no longer
// than this may be returned as well.
func (m *MemoryCache) find(key string, expired time.Duration) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.at(key)
	if !e.isUsable(expired) {
		m.stats.Misses++
		return nil
	}
	m.stats.Hits++
	m.recency.MoveToFront(m.entries[key])
	return e
}

// at returns the entry at a key, or nil.
func (m *MemoryCache) at(key string) *entry {
	if element := m.entries[key]; element != nil {
		return element.Value.(*entry)
	}
	return nil
}

// keep takes entries in; those that are nil are not to be kept. Entries of one
// request come together, because many goroutines that each lock for one would
// wait for each other.
func (m *MemoryCache) keep(entries ...*entry) {
	o := m.options()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range entries {
		if e == nil {
			continue
		}
		replaced := m.at(e.key)
		switch {
		case replaced.isUsable(o.StaleFor) && replaced.known && !e.known:
			// Keep the known card, and do not ask the service again for as long as e would be kept.
			replaced.asked.Store(max(e.expires, time.Now().Add(time.Second).UnixNano()))
		case e.isUsable(o.StaleFor) && e.size <= o.MaxBytes:
			m.drop(replaced)
			m.insert(e)
		}
	}
	for m.stats.Bytes > o.MaxBytes {
		m.drop(m.recency.Back().Value.(*entry))
		m.stats.Evictions++
	}
}

func (m *MemoryCache) insert(e *entry) {
	if m.entries == nil {
		m.entries = map[string]*list.Element{}
	}
	m.entries[e.key] = m.recency.PushFront(e)
	m.stats.Bytes += e.size
}

func (m *MemoryCache) drop(e *entry) {
	if e != nil {
		m.recency.Remove(m.entries[e.key])
		delete(m.entries, e.key)
		m.stats.Bytes -= e.size
	}
}

// jittered shortens a time to live by up to a tenth.
func jittered(ttl time.Duration) time.Duration { return ttl - rand.N(ttl/10+1) }
