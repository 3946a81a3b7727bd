package bins

import (
	"container/list"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
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
func (k cacheKey) String() string { return "bin3:" + string("dep"[k.enhanced]) + ":" + k.id }

// An entry is a result in memory. The facts that a card shares with other cards of its issuer
// and product are stored once.
type entry struct {
	key            cacheKey
	bin, message   string
	binMin, binMax string
	brands         []AdditionalCardBrand
	card           unique.Handle[cardFacts] // zero: no card
	unread         unique.Handle[string]    // Result.Unread, joined; zero: none
	expires        int64                    // in nanoseconds since 1970; a time.Time takes three times the memory
	recency        *list.Element
	asked          atomic.Int64 // to renew it: no further try before this time
	known          bool         // see Result.isKnown
}

// maxEntrySize is the maximum size of an entry in bytes. A full card has some 2 KB.
const maxEntrySize = 8 << 10

// pack makes an entry from a result with the time when the service sent it. It returns nil if
// the result must not be kept.
func (m *MemoryCache) pack(key cacheKey, r *Result, sent time.Time) *entry {
	known := r.isKnown()
	isUnclear := !known && r.Error == "" && r.Unread != nil
	if mayBeCardNumber(key.id) || r.size() > maxEntrySize || isUnclear {
		return nil
	}
	o := m.options()
	ttl := max(0, o.NegativeTTL)
	if known {
		ttl = o.TTL
	}
	// Clone the strings: those of a response share memory, so one would keep all of it.
	key.id = strings.Clone(key.id)
	e := &entry{key: key, message: strings.Clone(r.Error), known: known, expires: sent.Add(jittered(ttl)).UnixNano()}
	if !mayBeCardNumber(r.BIN) {
		e.bin = strings.Clone(r.BIN)
	}
	if r.hasCard() {
		card := r.Data.Card
		e.binMin, e.binMax = strings.Clone(card.BINMin), strings.Clone(card.BINMax)
		e.brands = slices.Clone(card.AdditionalCardBrands)
		for i := range e.brands {
			b := &e.brands[i]
			for _, text := range [...]*string{&b.CardBrand, &b.BINMin, &b.BINMax, &b.CardBrandProduct, &b.CardBrandBankName} {
				*text = strings.Clone(*text)
			}
		}
		e.card = unique.Make(factsOf(card))
	}
	if r.Unread != nil {
		e.unread = unique.Make(strings.Join(r.Unread, " "))
	}
	return e
}

// isKnown reports whether an item has a card that states anything, and no error.
func (r *Result) isKnown() bool {
	if !r.hasCard() || r.Error != "" {
		return false
	}
	card := *r.Data.Card
	card.PANOrToken, card.CorrelationID = Identifier{}, ""
	if len(card.AdditionalCardBrands) == 0 {
		card.AdditionalCardBrands = nil
	}
	return !reflect.ValueOf(card).IsZero()
}

// size is the approximate memory of the result in bytes, if it shares nothing.
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

// result returns the result for an identifier, as a copy for the caller. It states the BIN
// only if the identifier begins with it.
func (e *entry) result(id string) Result {
	r := Result{Error: e.message}
	if e.unread != (unique.Handle[string]{}) {
		r.Unread = strings.Fields(e.unread.Value())
	}
	if strings.HasPrefix(id, e.bin) {
		r.BIN = e.bin
	}
	if e.card != (unique.Handle[cardFacts]{}) {
		card := &Card{BINMin: e.binMin, BINMax: e.binMax, AdditionalCardBrands: slices.Clone(e.brands)}
		e.card.Value().fill(card)
		r.Data = &Data{Card: card}
	}
	return r
}

// cardFacts are the facts of a card in a comparable form, without its range, its additional
// brands, which have ranges, too, and the ids of a single card.
type cardFacts struct {
	integers [4]Optional[int64]
	booleans [13]Optional[bool]
	texts    [43]string
	fees     string
}

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
	f.fees = string(card.NetworkFees)
	return f
}

// fill is the reverse of factsOf.
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
}

// integers, booleans and texts list the fields that cardFacts consist of.
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
