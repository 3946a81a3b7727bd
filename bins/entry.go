package bins

import (
	"strings"
	"sync/atomic"
	"unicode"
)

// An enhancement is the state of LookupRequest.Enhanced, which may change the
// answer.
type enhancement uint8

func enhancementOf(enhanced *bool) enhancement {
	switch {
	case enhanced == nil:
		return 'd'
	case *enhanced:
		return 'e'
	}
	return 'p'
}

type cacheKey struct {
	id       string
	enhanced enhancement
}

// keyForm begins the keys of a Cache. A later form of the values gets another.
const keyForm = "bin1:"

func (k cacheKey) String() string { return keyForm + string(k.enhanced) + ":" + k.id }

func parseKey(key string) (cacheKey, bool) {
	rest, ok := strings.CutPrefix(key, keyForm)
	if !ok || len(rest) < 2 || rest[1] != ':' {
		return cacheKey{}, false
	}
	return cacheKey{rest[2:], enhancement(rest[0])}, true
}

// An entry is an answer at rest.
type entry struct {
	key            cacheKey // id is "" for a range
	low, high      uint64
	bin, message   string
	binMin, binMax string
	data           bool
	template       *template            // nil: no card
	expires        int64                // in nanoseconds since 1970; a time.Time would treble it
	shared         atomic.Pointer[Data] // nil until it is asked for
	used           atomic.Bool
	place          int // in the ring
}

// maxEntrySize bounds what is worth its memory. A full card has some 2 KB.
const maxEntrySize = 8 << 10

func (e *entry) size() int {
	n := len(e.key.id) + len(e.bin) + len(e.message) + len(e.binMin) + len(e.binMax)
	if e.template != nil {
		n += e.template.size
	}
	return n
}

func (e *entry) same(other *entry) bool {
	return e.template == other.template && e.message == other.message
}

// result is the answer for an identifier, as a copy of the caller's own. It
// states the BIN only where the identifier begins with it.
func (e *entry) result(id string) Result {
	r := e.words(id)
	switch {
	case e.template != nil:
		known := new(item)
		e.template.fill(&known.card, e.binMin, e.binMax)
		known.data.Card = &known.card
		r.Data = &known.data
	case e.data:
		r.Data = &Data{}
	}
	return r
}

// sharedResult is the answer for an identifier, with data that nobody may change.
func (e *entry) sharedResult(id string) Result {
	r := e.words(id)
	if r.Data = e.shared.Load(); r.Data == nil {
		if r.Data = e.result(id).Data; r.Data != nil {
			e.shared.CompareAndSwap(nil, r.Data)
		}
	}
	return r
}

// words is an answer without its data.
func (e *entry) words(id string) Result {
	r := Result{Error: e.message}
	if strings.HasPrefix(id, e.bin) {
		r.BIN = e.bin
	}
	return r
}

// mayBeCardNumber tells whether an identifier holds as many digits as a card
// number has, in whatever notation and script.
func mayBeCardNumber(id string) bool {
	digits := 0
	for _, r := range id {
		if unicode.IsDigit(r) {
			digits++
		}
	}
	return digits >= cardNumberDigits
}

// cardNumberDigits is the least that a card number has.
const cardNumberDigits = 12
