package bins

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"sync"
)

// A template is what many cards have in common: a Card without its range and
// without what belongs to one card alone.
type template struct {
	common Card
	key    templateKey
	size   int // of its content
	uses   int
}

type templateKey [sha256.Size]byte

// cardsOwn stands in a template for a bound of the card's own range, where an
// additional brand repeats it. No answer holds it, as it is no UTF-8.
const cardsOwn = "\xff"

// templateOf returns the card's template: the one that is known by the key of its
// content, or else a new one.
func templateOf(card *Card, known func(key templateKey) *template) *template {
	common := *card
	common.BINMin, common.BINMax = "", ""
	common.PANOrToken, common.CorrelationID = Identifier{}, ""
	common.AdditionalCardBrands = slices.Clone(card.AdditionalCardBrands)
	for i := range common.AdditionalCardBrands {
		b := &common.AdditionalCardBrands[i]
		b.BINMin, b.BINMax = swapped(b.BINMin, card.BINMin, cardsOwn), swapped(b.BINMax, card.BINMax, cardsOwn)
	}
	content := common.appendContent(make([]byte, 0, 2<<10))
	key := templateKey(sha256.Sum256(content))
	if t := known(key); t != nil {
		return t
	}
	common.NetworkFees = bytes.Clone(common.NetworkFees)
	return &template{common: common, key: key, size: len(content)}
}

// templates have a lock of their own, which is hardly ever held: those who look
// for one do not wait for answers that are being kept.
type templates struct {
	mu    sync.RWMutex // of byKey; what is in it is counted under the cache's lock
	byKey map[templateKey]*template
}

func (t *templates) find(key templateKey) *template {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byKey[key]
}

// share returns the template that is already there for the same card, if any.
func (t *templates) share(own *template) *template {
	shared := t.find(own.key)
	if shared == nil {
		shared = own
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.byKey == nil {
			t.byKey = map[templateKey]*template{}
		}
		t.byKey[own.key] = own
	}
	shared.uses++
	return shared
}

func (t *templates) release(shared *template) {
	if shared.uses--; shared.uses == 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.byKey, shared.key)
	}
}

func swapped(s, old, new string) string {
	if s == old {
		return new
	}
	return s
}

// fill makes a Card of the caller's own, in a range.
func (t *template) fill(card *Card, binMin, binMax string) {
	*card = t.common
	card.BINMin, card.BINMax = binMin, binMax
	card.AdditionalCardBrands = slices.Clone(card.AdditionalCardBrands)
	for i := range card.AdditionalCardBrands {
		b := &card.AdditionalCardBrands[i]
		b.BINMin, b.BINMax = swapped(b.BINMin, cardsOwn, binMin), swapped(b.BINMax, cardsOwn, binMax)
	}
	card.NetworkFees = bytes.Clone(card.NetworkFees)
}
