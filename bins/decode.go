package bins

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/carddata/carddata-go/internal/fault"
)

// These limits bound the memory that a small text can expand to. A documented response of 50
// cards has some 800 objects.
const (
	maxElements = 100_000
	maxObjects  = 10_000
)

// decode reads the response to a number of cards. It gives the same result as encoding/json
// for all that encoding/json can read, but for a name that occurs twice: the last one counts.
func decode(body []byte, keepRaw bool, cards int) (*LookupResponse, error) {
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // some programs write a byte order mark first
	s := scanner{body: body, keepRaw: keepRaw, expected: min(cards, MaxCards), order: documented}
	resp, ok := s.response()
	switch {
	case ok:
		return resp, nil
	case s.refusal != "":
		return nil, fault.Unusable(s.refusal)
	case !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")):
		return nil, fault.Unusable("not an object")
	}
	var whole json.RawMessage
	return nil, fault.Malformed(json.Unmarshal(body, &whole))
}

// A schema lists the fields of an object, in the order of the struct.
type schema struct {
	id     int
	place  string   // the path to it
	names  []string // with quotes and colon: "bin":
	places []string // the paths to the fields
}

var (
	responseSchema       = schemaOf[LookupResponse](0, "")
	resultSchema         = schemaOf[Result](1, "cards")
	dataSchema           = schemaOf[Data](2, "cards.data")
	cardSchema           = schemaOf[Card](3, "cards.data.card")
	numberSchema         = schemaOf[Number](4, "cards.data.card.number")
	brandSchema          = schemaOf[AdditionalCardBrand](5, "cards.data.card.additional_card_brands")
	productSchema        = schemaOf[Product](6, "cards.data.card.product")
	bankSchema           = schemaOf[Bank](7, "cards.data.card.bank")
	countrySchema        = schemaOf[Country](8, "cards.data.card.country")
	authenticationSchema = schemaOf[Authentication](9, "cards.data.card.authentication")
	costSchema           = schemaOf[Cost](10, "cards.data.card.cost")
	interchangeSchema    = schemaOf[Interchange](11, "cards.data.card.cost.interchange")
	domesticSchema       = schemaOf[InterchangeCap](12, "cards.data.card.cost.interchange.domestic")
	interSchema          = schemaOf[InterchangeCap](12, "cards.data.card.cost.interchange.inter")
	intraSchema          = schemaOf[InterchangeCap](12, "cards.data.card.cost.interchange.intra")
)

var documented order

func schemaOf[T any](id int, place string) *schema {
	s := &schema{id: id, place: place}
	for field := range reflect.TypeFor[T]().Fields() {
		if name := field.Tag.Get("json"); name != "-" && field.IsExported() {
			documented[id][len(s.names)] = uint8(len(s.names))
			s.names = append(s.names, `"`+name+`":`)
			s.places = append(s.places, strings.TrimPrefix(place+"."+name, "."))
		}
	}
	return s
}

// response reads a whole response, or returns false.
func (s *scanner) response() (*LookupResponse, bool) {
	resp := new(LookupResponse)
	if !s.object(responseSchema, &resp.Cards) {
		return nil, false
	}
	s.next()
	return resp, !s.gaveUp && s.at == len(s.body)
}

// An errorText is Result.Error: a string, by the documentation.
type errorText string

// value reads the next value into a zero target, and reports whether it has the documented
// type. It does not step over a value of another type. Null leaves the target zero.
func (s *scanner) value(target any) (ok bool) {
	first := s.next()
	if first == 'n' {
		s.word("null")
		return true
	}
	switch v := target.(type) {
	case *string:
		*v, ok = s.text()
	case *errorText:
		*(*string)(v), ok = s.text()
	case *Optional[bool]:
		switch first {
		case 't':
			s.word("true")
			*v, ok = Stated(true), true
		case 'f':
			s.word("false")
			*v, ok = Stated(false), true
		}
	case *Optional[int64]:
		var n int64
		if n, ok = s.integer(); ok {
			*v = Stated(n)
		}
	case *Identifier:
		if s.item.echo, ok = s.text(); s.item.echo != "" {
			*v = Identifier{value: &s.item.echo}
		}
	case *json.RawMessage:
		if ok = first == '{'; ok {
			*v = bytes.Clone(s.skip())
		}
	case *[]Result:
		*v, ok = elements(s, make([]Result, 0, s.expected), s.result)
	case *Result:
		ok = s.object(resultSchema, &v.BIN, &v.Data, (*errorText)(&v.Error))
	case **Data:
		if first == '{' {
			s.item = new(item)
			*v = &s.item.data
			ok = s.object(dataSchema, &(*v).Card)
		}
	case **Card:
		if first == '{' {
			*v = &s.item.card
			ok = s.card(*v)
		}
	case *Number:
		ok = s.object(numberSchema, &v.Length)
	case *[]AdditionalCardBrand:
		*v, ok = elements(s, []AdditionalCardBrand{}, s.brand)
	case *AdditionalCardBrand:
		ok = s.object(brandSchema, &v.CardBrand, &v.BINMax, &v.BINMin, &v.CardBrandProduct, &v.CardBrandBankName,
			&v.EcomEnabled, &v.BillpayEnabled)
	case *Product:
		ok = s.object(productSchema, &v.ProductID, &v.ProductName)
	case *Bank:
		ok = s.object(bankSchema, &v.Name, &v.Phone, &v.URL, &v.CleanName)
	case *Country:
		ok = s.object(countrySchema, &v.Alpha2, &v.Numeric, &v.Name)
	case *Authentication:
		ok = s.object(authenticationSchema, &v.AuthenticationRequired, &v.AuthenticationName)
	case *Cost:
		ok = s.object(costSchema, &v.Interchange)
	case *Interchange:
		ok = s.object(interchangeSchema, &v.Regulated, &v.RegulatedName, &v.Notes, &v.Domestic, &v.Inter, &v.Intra)
	case *InterchangeCap:
		schema := intraSchema
		if caps := &s.item.card.Cost.Interchange; v == &caps.Domestic {
			schema = domesticSchema
		} else if v == &caps.Inter {
			schema = interSchema
		}
		ok = s.object(schema, &v.CapRegionShortname, &v.CapAdvaloremAmount, &v.CapTypeName, &v.CapFixedAmount,
			&v.CapTypeQualifierCurrency, &v.CapTypeQualifierText, &v.CapTypeQualifierLower, &v.CapTypeQualifierUpper)
	}
	return ok
}

func (s *scanner) card(c *Card) bool {
	return s.object(cardSchema, &c.Number, &c.BINLength, &c.SVCBINLength, &c.BINMin, &c.BINMax, &c.PANOrToken, &c.VirtualCard,
		&c.Level2, &c.Level3, &c.ALM, &c.AccountUpdater, &c.DomesticOnly, &c.GamblingBlocked, &c.IssuerCurrency,
		&c.Reloadable, &c.AdditionalCardBrands, &c.CardBrand, &c.CardSegmentType, &c.ComboCard, &c.Type,
		&c.FundingSource, &c.Prepaid, &c.Product, &c.Bank, &c.Country, &c.Authentication, &c.Cost, &c.NetworkFees,
		&c.CorrelationID, &c.IssuerSupportsTokenization, &c.MultiAccountAccessIndicator, &c.SharedBIN,
		&c.FlaggedForDeleteRemainingWks)
}

func elements[T any](s *scanner, list []T, read func(*T)) (_ []T, ok bool) {
	if s.next() != '[' {
		return nil, false
	}
	for ok := s.enter('[', ']'); ok; ok = s.more(']') {
		if s.elements++; s.elements > maxElements {
			s.refuse(tooMany)
		}
		list = append(list, *new(T))
		read(&list[len(list)-1])
	}
	return list, true
}

func (s *scanner) result(r *Result) {
	s.texts.Reset()
	s.room, s.kept = min(max(s.kept, s.room), maxRoom), 0
	s.unread = nil
	s.next()
	start := s.at
	if s.value(r) {
		r.Unread = s.unread
	} else {
		s.oddValue(r, resultSchema.place)
	}
	if s.keepRaw {
		r.Raw = bytes.Clone(s.body[start:s.at])
	}
}

func (s *scanner) brand(b *AdditionalCardBrand) {
	if !s.value(b) {
		s.oddValue(b, brandSchema.place)
	}
}

// object reads an object's fields into targets, in the order of its schema. The fields
// are expected in the order of the object before. It reports whether there is an object.
func (s *scanner) object(o *schema, targets ...any) bool {
	if s.next() != '{' {
		return false
	}
	if s.objects++; s.objects > maxObjects {
		s.refuse(tooMany)
	}
	var read uint64
	expected := &s.order[o.id][0]
	for ok := s.enter('{', '}'); ok; ok = s.more('}') {
		field := s.field(o, int(*expected))
		if field < 0 {
			s.skip()
			continue
		}
		if read&(1<<field) != 0 {
			forget(targets[field])
		}
		read |= 1 << field
		*expected = uint8(field)
		expected = &s.order[o.id][field+1]
		if !s.value(targets[field]) {
			s.oddValue(targets[field], o.places[field])
		}
	}
	return true
}

// forget empties the target of a member that occurs again.
func forget(target any) {
	if card, ok := target.(**Card); ok && *card != nil {
		**card = Card{}
	}
	reflect.ValueOf(target).Elem().SetZero()
}

// field reads a field's name and returns its index, or -1 if the field is unknown. It tries
// the expected field first. As with encoding/json, the case of a name does not matter.
func (s *scanner) field(o *schema, expected int) int {
	s.next()
	if name := o.names[expected]; s.hasNext(name) {
		s.at += len(name)
		return expected
	}
	start := s.at
	name, plain := s.quoted()
	if !plain {
		name = []byte(s.unescaped(start))
	}
	s.next()
	s.word(":")
	for i, known := range o.names {
		if strings.EqualFold(string(name), known[1:len(known)-2]) {
			return i
		}
	}
	return -1
}
