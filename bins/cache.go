package bins

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Cache keeps answers beyond this process, such as in a Redis that replicas
// share. Values are opaque; an implementation stores and returns them as they
// are. Keys are made of identifier and Enhanced, never of a card number; only
// items that carry a card are kept.
//
// An error of Get counts as nothing found and one of Set as nothing kept: a
// cache that fails costs requests and never an answer. The context of each call
// ends after 250 milliseconds, which an implementation must obey.
type Cache interface {
	// Get returns the values of the keys that it has. There are 1 to 50 keys.
	Get(ctx context.Context, keys []string) (map[string][]byte, error)
	// Set keeps 1 to 50 values for ttl.
	Set(ctx context.Context, values map[string][]byte, ttl time.Duration) error
}

// CacheOptions configure a [MemoryCache]. The zero value is good.
type CacheOptions struct {
	// Entries bounds how many answers are kept, and with them the memory: about
	// 300 bytes each where issuers, products and costs repeat, some 2 KB where
	// nothing does, and never more than 8 KB, as larger answers are not kept. The
	// ones not used for longest go first. Zero is 100,000.
	Entries int
	// TTL is how long an answer is kept, less up to a tenth at random, so that
	// answers learned together do not expire together. Zero is 24 hours.
	TTL time.Duration
	// NegativeTTL is the same for items without a card, which are kept in memory
	// alone. Zero is one hour; below zero they are not kept.
	NegativeTTL time.Duration
}

// A MemoryCache keeps answers in memory. The zero value is one with the default
// options. It may be shared by any number of
// loaders and bulk lookups, and is safe for concurrent use.
//
// An answer is kept under the identifier that it answers, unless that may be a
// card number: it holds 12 digits or more. With the assumption that a range
// shares one answer, see [BulkOptions], it is kept under its range, which serves
// card numbers too. What belongs to one card alone is not kept: pan_or_token and
// correlation_id read empty in a reused answer.
type MemoryCache struct {
	given CacheOptions

	mu        sync.RWMutex
	keys      map[cacheKey]*entry
	ranges    map[enhancement]*rangeIndex
	templates templates
	ring      []*entry // in no order; hand goes round it
	hand      int
	conflicts atomic.Int64
}

const defaultEntries = 100_000

// NewMemoryCache returns an empty cache.
func NewMemoryCache(o CacheOptions) *MemoryCache { return &MemoryCache{given: o} }

// maxTTL is for ever, and can be added to the time.
const maxTTL = 10 * 365 * 24 * time.Hour

func (m *MemoryCache) options() CacheOptions {
	o := m.given
	if o.Entries <= 0 {
		o.Entries = defaultEntries
	}
	if o.TTL <= 0 {
		o.TTL = 24 * time.Hour
	}
	if o.NegativeTTL == 0 {
		o.NegativeTTL = time.Hour
	}
	o.TTL, o.NegativeTTL = min(o.TTL, maxTTL), min(o.NegativeTTL, maxTTL)
	return o
}

// Len returns how many answers are kept.
func (m *MemoryCache) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.ring)
}

// Conflicts returns how often an answer's range overlapped one with another
// answer, which casts doubt on the assumption that a range shares one answer.
// Where both hold an identifier, the narrower is used.
func (m *MemoryCache) Conflicts() int64 { return m.conflicts.Load() }

// Get and Set make a MemoryCache a [Cache]; loaders and bulk lookups use it more
// directly.
func (m *MemoryCache) Get(_ context.Context, keys []string) (map[string][]byte, error) {
	values := map[string][]byte{}
	for _, key := range keys {
		if k, ok := parseKey(key); ok {
			if e := m.find(k, false); e != nil {
				values[key], _ = json.Marshal(e.result(k.id))
			}
		}
	}
	return values, nil
}

// Set keeps the values for its own TTL, if that is shorter.
func (m *MemoryCache) Set(_ context.Context, values map[string][]byte, ttl time.Duration) error {
	for key, value := range values {
		var r Result
		if k, ok := parseKey(key); ok && json.Unmarshal(value, &r) == nil {
			m.keep(m.pack(k, &r, false, ttl))
		}
	}
	return nil
}

// find returns the entry that answers an identifier, or nil.
func (m *MemoryCache) find(key cacheKey, byRange bool) *entry {
	now := time.Now().UnixNano()
	m.mu.RLock()
	defer m.mu.RUnlock()
	e := m.keys[key]
	if (e == nil || now >= e.expires) && byRange && isDigits(key.id) && len(key.id) <= rangeDigits {
		e = nil
		if index := m.ranges[key.enhanced]; index != nil {
			e = index.find(span(key.id))
		}
	}
	if e == nil || now >= e.expires {
		return nil
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	return e
}

// pack returns an answer at rest, to be kept for at most so long, or nil if it is
// not to be kept.
func (m *MemoryCache) pack(key cacheKey, r *Result, byRange bool, atMost time.Duration) *entry {
	// Clones, because the strings of an item lie together, and one would keep all.
	e := &entry{key: key, message: strings.Clone(r.Error), data: r.Data != nil}
	o := m.options()
	ttl := o.NegativeTTL
	if e.data && r.Data.Card != nil {
		ttl, e.template = o.TTL, templateOf(r.Data.Card, m.templates.find)
		bounds := r.Data.Card.BINMin + r.Data.Card.BINMax
		e.binMin, e.binMax = bounds[:len(r.Data.Card.BINMin)], bounds[len(r.Data.Card.BINMin):]
	}
	if byRange && isDigits(key.id) && len(key.id) <= rangeDigits {
		if low, high, ok := r.bounds(); ok && contains(low, high, key.id) {
			e.key.id, e.low, e.high = "", low, high
		}
	}
	switch {
	case mayBeCardNumber(r.BIN):
	case strings.HasPrefix(e.key.id, r.BIN):
		e.bin = e.key.id[:len(r.BIN)]
	default:
		e.bin = strings.Clone(r.BIN)
	}
	if ttl = min(ttl, atMost); ttl <= 0 || key.id == "" || mayBeCardNumber(e.key.id) || e.size() > maxEntrySize {
		return nil
	}
	e.expires = time.Now().Add(jittered(ttl)).UnixNano()
	return e
}

// keep takes answers in; those that are nil are not to be kept. Answers of one
// request come together, because many goroutines that each lock for one would
// wait for each other.
func (m *MemoryCache) keep(entries ...*entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil {
		m.keys, m.ranges = map[cacheKey]*entry{}, map[enhancement]*rangeIndex{}
	}
	for _, e := range entries {
		if e == nil {
			continue
		}
		if e.template != nil {
			e.template = m.templates.share(e.template)
		}
		m.place(e)
		if e.key.id != "" {
			if old := m.keys[e.key]; old != nil {
				m.drop(old)
			}
			m.keys[e.key] = e
			continue
		}
		index := m.ranges[e.key.enhanced]
		if index == nil {
			index = &rangeIndex{}
			m.ranges[e.key.enhanced] = index
		}
		replaced, conflict := index.insert(e)
		if replaced != nil {
			m.forget(replaced)
		}
		if conflict {
			m.conflicts.Add(1)
		}
	}
}

// place puts e into the ring, and makes room by dropping the first entry that
// was not used since the hand last came by.
func (m *MemoryCache) place(e *entry) {
	for len(m.ring) >= m.options().Entries {
		m.hand %= len(m.ring)
		if m.ring[m.hand].used.Swap(false) {
			m.hand++
			continue
		}
		m.drop(m.ring[m.hand])
	}
	e.place = len(m.ring)
	m.ring = append(m.ring, e)
}

// drop removes e from everywhere.
func (m *MemoryCache) drop(e *entry) {
	if e.key.id != "" {
		delete(m.keys, e.key)
	} else {
		m.ranges[e.key.enhanced].remove(e)
	}
	m.forget(e)
}

// forget removes e from the ring.
func (m *MemoryCache) forget(e *entry) {
	last := len(m.ring) - 1
	m.ring[e.place] = m.ring[last]
	m.ring[e.place].place = e.place
	m.ring[last] = nil
	m.ring = m.ring[:last]
	if e.template != nil {
		m.templates.release(e.template)
	}
}

// jittered shortens a time to live by up to a tenth.
func jittered(ttl time.Duration) time.Duration { return ttl - rand.N(ttl/10+1) }
