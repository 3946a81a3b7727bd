package bins

import (
	"container/list"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unique"
)

// An enhancement is the state of LookupRequest.Enhanced, which may change the response:
// 0 if it is left to the service, 1 if it is on, and 2 if it is off.
type enhancement uint8

func enhancementOf(enhanced *bool) enhancement {
	switch {
	case enhanced == nil:
		return 0
	case *enhanced:
		return 1
	}
	return 2
}

type cacheKey struct {
	id       string
	enhanced enhancement
}

// String is the key in a Cache. A later form of the values gets another beginning.
func (k cacheKey) String() string { return "bin2:" + string("dep"[k.enhanced]) + ":" + k.id }

// An entry is a result as the memory keeps it. What a card has in common with the other
// cards of its issuer and product is kept once for all of them.
type entry struct {
	id             string // "" for a range
	bin, message   string
	binMin, binMax string
	low, high      uint64                   // of a range
	card           unique.Handle[cardFacts] // zero: no card
	expires        int64                    // in nanoseconds since 1970; a time.Time would treble it
	recency        *list.Element
	enhanced       enhancement
	hasData        bool
	conflicts      bool // and was counted as a conflict
}

// maxEntrySize bounds what is worth its memory, in bytes. A full card has some 2 KB.
const maxEntrySize = 8 << 10

// pack makes an entry of a result, or returns nil if it is not to be kept.
func (m *MemoryCache) pack(key cacheKey, r *Result, byRange bool) *entry {
	o := m.options()
	e := &entry{id: key.id, enhanced: key.enhanced, hasData: r.Data != nil}
	ttl, size := o.NegativeTTL, r.size()
	if r.hasCard() {
		ttl = o.TTL
	}
	if bounds := r.bounds(); byRange && bounds.holds(spanOf(key.id)) {
		e.id, e.low, e.high = "", bounds.first, bounds.last
		const place = 32
		for range prefixes(e.low, e.high) {
			size += place
		}
	}
	if key.id == "" || mayBeCardNumber(e.id) || ttl <= 0 || size > maxEntrySize {
		return nil
	}
	e.expires = time.Now().Add(jittered(ttl)).UnixNano()
	// Copies, because the strings of a response lie together: one would keep all.
	e.id, e.message = strings.Clone(e.id), strings.Clone(r.Error)
	if !mayBeCardNumber(r.BIN) {
		e.bin = strings.Clone(r.BIN)
	}
	if r.hasCard() {
		card := r.Data.Card
		e.binMin, e.binMax = strings.Clone(card.BINMin), strings.Clone(card.BINMax)
		e.card = unique.Make(factsOf(card))
	}
	return e
}

// size is about what the result takes in memory, in bytes, if it shares nothing.
func (r *Result) size() int {
	size := len(r.BIN) + len(r.Error)
	if r.hasCard() {
		const fields, brand = 1 << 10, 100
		size += fields + len(r.Data.Card.NetworkFees) + len(r.Data.Card.BINMin) + len(r.Data.Card.BINMax)
		for _, text := range r.Data.Card.texts() {
			size += len(*text)
		}
		for _, b := range r.Data.Card.AdditionalCardBrands {
			size += brand + len(b.CardBrand+b.BINMin+b.BINMax+b.CardBrandProduct+b.CardBrandBankName)
		}
	}
	return size
}

func (e *entry) isRange() bool { return e.id == "" }

// isUsable tells whether there is an entry that has not expired for so long.
func (e *entry) isUsable(expired time.Duration) bool {
	return e != nil && time.Now().UnixNano()-int64(expired) < e.expires
}

// same tells whether two entries state the same of their cards.
func (e *entry) same(other *entry) bool {
	return e.card == other.card && e.message == other.message
}

// result is the result for an identifier, as a copy of the caller's own. It states
// the BIN only where the identifier begins with it.
func (e *entry) result(id string) Result {
	r := Result{Error: e.message}
	if strings.HasPrefix(id, e.bin) {
		r.BIN = e.bin
	}
	if !e.hasData {
		return r
	}
	known := new(item)
	r.Data = &known.data
	if e.card != (unique.Handle[cardFacts]{}) {
		known.card.BINMin, known.card.BINMax = e.binMin, e.binMax
		e.card.Value().fill(&known.card)
		r.Data.Card = &known.card
	}
	return r
}

// cardFacts are what a card states, in a form that can be compared, but for its range
// and what belongs to one card alone.
type cardFacts struct {
	integers [4]Optional[int64]
	booleans [13]Optional[bool]
	texts    [43]string
	fees     string
	brands   unique.Handle[brandList]
	noBrands bool // not even an empty list
}

// A brandList is the additional brands from one on; zero: none.
type brandList struct {
	brand AdditionalCardBrand
	next  unique.Handle[brandList]
}

// ownBound stands in a brandList for a bound of the card's own range, which many brands
// repeat. No response holds it, as it is no UTF-8.
const ownBound = "\xff"

func factsOf(card *Card) (f cardFacts) {
	for i, integer := range card.integers() {
		f.integers[i] = *integer
	}
	for i, boolean := range card.booleans() {
		f.booleans[i] = *boolean
	}
	for i, text := range card.texts() {
		f.texts[i] = *text
	}
	f.fees, f.noBrands = string(card.NetworkFees), card.AdditionalCardBrands == nil
	for _, brand := range slices.Backward(card.AdditionalCardBrands) {
		if brand.BINMin == card.BINMin {
			brand.BINMin = ownBound
		}
		if brand.BINMax == card.BINMax {
			brand.BINMax = ownBound
		}
		f.brands = unique.Make(brandList{brand, f.brands})
	}
	return f
}

// fill is the reverse of factsOf, for a card of which the range is there.
func (f cardFacts) fill(card *Card) {
	for i, integer := range card.integers() {
		*integer = f.integers[i]
	}
	for i, boolean := range card.booleans() {
		*boolean = f.booleans[i]
	}
	for i, text := range card.texts() {
		*text = f.texts[i]
	}
	if f.fees != "" {
		card.NetworkFees = json.RawMessage(f.fees)
	}
	if !f.noBrands {
		card.AdditionalCardBrands = []AdditionalCardBrand{}
	}
	for list := f.brands; list != (unique.Handle[brandList]{}); list = list.Value().next {
		brand := list.Value().brand
		if brand.BINMin == ownBound {
			brand.BINMin = card.BINMin
		}
		if brand.BINMax == ownBound {
			brand.BINMax = card.BINMax
		}
		card.AdditionalCardBrands = append(card.AdditionalCardBrands, brand)
	}
}

// integers, booleans and texts list the fields that cardFacts are made of.
func (c *Card) integers() [4]*Optional[int64] {
	return [...]*Optional[int64]{&c.Number.Length, &c.BINLength, &c.SVCBINLength, &c.FlaggedForDeleteRemainingWks}
}

func (c *Card) booleans() [13]*Optional[bool] {
	return [...]*Optional[bool]{
		&c.VirtualCard, &c.Level2, &c.Level3, &c.ALM, &c.AccountUpdater, &c.DomesticOnly, &c.GamblingBlocked,
		&c.Reloadable, &c.Prepaid, &c.Authentication.AuthenticationRequired, &c.Cost.Interchange.Regulated,
		&c.IssuerSupportsTokenization, &c.SharedBIN,
	}
}

func (c *Card) texts() [43]*string {
	i := &c.Cost.Interchange
	texts := [43]*string{
		&c.IssuerCurrency, &c.CardBrand, &c.CardSegmentType, &c.ComboCard, &c.Type, &c.FundingSource,
		&c.Product.ProductID, &c.Product.ProductName, &c.Bank.Name, &c.Bank.Phone, &c.Bank.URL, &c.Bank.CleanName,
		&c.Country.Alpha2, &c.Country.Numeric, &c.Country.Name, &c.Authentication.AuthenticationName,
		&i.RegulatedName, &i.Notes, &c.MultiAccountAccessIndicator,
	}
	rest := texts[19:]
	for _, limit := range [...]*InterchangeCap{&i.Domestic, &i.Inter, &i.Intra} {
		rest = rest[copy(rest, []*string{
			&limit.CapRegionShortname, &limit.CapAdvaloremAmount, &limit.CapTypeName, &limit.CapFixedAmount,
			&limit.CapTypeQualifierCurrency, &limit.CapTypeQualifierText, &limit.CapTypeQualifierLower, &limit.CapTypeQualifierUpper,
		}):]
	}
	return texts
}
