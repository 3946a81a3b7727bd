package bins

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// An answerStore is where bulk lookups and loaders find and keep answers: in
// memory first, then in the caller's cache.
type answerStore struct {
	memory   *MemoryCache
	shared   Cache // nil: none beyond memory
	enhanced enhancement
	ranges   bool
	missing  func() error // of a card that an answer leaves out
}

func newAnswerStore(operation string, c Cache, entries int, enhanced *bool, ranges bool) *answerStore {
	s := &answerStore{
		enhanced: enhancementOf(enhanced), ranges: ranges,
		missing: func() error {
			return &Error{Operation: operation, Err: transport.Reason(ErrMissing.Error(), ErrMissing)}
		},
	}
	switch m, ok := c.(*MemoryCache); {
	case m != nil:
		s.memory = m
	case ok:
		s.memory = NewMemoryCache(CacheOptions{Entries: entries})
	default:
		s.memory, s.shared = NewMemoryCache(CacheOptions{Entries: entries}), c
	}
	return s
}

// remembered finds an answer in memory, or nil.
func (s *answerStore) remembered(id string) *entry {
	return s.memory.find(cacheKey{id, s.enhanced}, s.ranges)
}

// resolve answers what it can, and returns the rest.
func (s *answerStore) resolve(ctx context.Context, lookups []*lookup) []*lookup {
	rest := make([]*lookup, 0, len(lookups))
	var keys []string
	for _, l := range lookups {
		if e := s.remembered(l.sent); e != nil {
			l.answer, l.resolved = answer{known: e}, true
			continue
		}
		rest = append(rest, l)
		if s.shared != nil && !l.missed && !mayBeCardNumber(l.sent) {
			keys = append(keys, s.key(l.sent))
		}
	}
	if len(keys) == 0 {
		return rest
	}
	ctx, cancel := context.WithTimeout(ctx, cachePatience)
	defer cancel()
	values, err := s.shared.Get(ctx, keys)
	if err != nil {
		return rest
	}
	return slices.DeleteFunc(rest, func(l *lookup) bool {
		l.missed = true
		value, ok := values[s.key(l.sent)]
		var r Result
		if !ok || json.Unmarshal(value, &r) != nil {
			return false
		}
		// Nothing but cards is shared.
		if _, none := r.Card(); none != nil {
			return false
		}
		l.answer, l.resolved = s.pack(l.sent, r), true
		l.rest()
		s.memory.keep(l.known)
		return true
	})
}

// settle finds each identifier's item in an answer of the service, and returns the
// values to share.
func (s *answerStore) settle(sent []string, items []Result) (answers []answer, values map[string][]byte) {
	answers, values = make([]answer, len(sent)), map[string][]byte{}
	for i, found := range correlate(sent, items) {
		if found < 0 {
			answers[i].err = s.missing()
			continue
		}
		r := items[found]
		answers[i] = s.pack(sent[i], r)
		if _, none := r.Card(); s.shared != nil && none == nil && !mayBeCardNumber(sent[i]) {
			r = r.clone()
			r.forgetCard()
			if value, err := json.Marshal(r); err == nil {
				values[s.key(sent[i])] = value
			}
		}
	}
	return answers, values
}

// keep keeps answers in memory.
func (s *answerStore) keep(answers []answer) {
	known := make([]*entry, len(answers))
	for i := range answers {
		known[i] = answers[i].known
	}
	s.memory.keep(known...)
}

// cachePatience bounds each call of the caller's cache.
const cachePatience = 250 * time.Millisecond

// share keeps values in the caller's cache. One that keeps nothing costs requests,
// and no answer.
func (s *answerStore) share(ctx context.Context, values map[string][]byte) {
	if len(values) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cachePatience)
	defer cancel()
	_ = s.shared.Set(ctx, values, jittered(s.memory.options().TTL))
}

// pack makes an answer of a result, which memory has yet to keep.
func (s *answerStore) pack(id string, r Result) answer {
	known := s.memory.pack(cacheKey{id, s.enhanced}, &r, s.ranges, s.memory.options().TTL)
	return answer{known: known, own: known != nil, whole: r}
}

func (s *answerStore) key(id string) string { return cacheKey{id, s.enhanced}.String() }
