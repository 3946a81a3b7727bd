package bins

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/carddata/carddata-go/internal/drift"
	"github.com/carddata/carddata-go/internal/transport"
)

// These limits bound the memory that a small text can expand to. A documented response of 50
// cards has some 3,000 members in 800 objects.
const (
	maxMembers = 100_000
	maxObjects = 10_000
)

// decode reads the response to a number of cards. It gives the same result as encoding/json,
// faster in most cases, and reports deviations from the documented form.
func decode(body []byte, keepRaw bool, cards int, report *drift.Report) (*LookupResponse, error) {
	s := scanner{body: body, keepRaw: keepRaw, expected: min(cards, MaxCards), order: documented, report: report}
	resp, ok := s.response()
	if !ok && (bytes.Count(body, []byte(",")) > maxMembers || bytes.Count(body, []byte("{")) > maxObjects) {
		return nil, transport.Unusable("too many members")
	}
	switch {
	case ok:
		return resp, nil
	case !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")):
		return nil, transport.Unusable("not an object")
	}
	resp, err := decodeSlowly(body, keepRaw)
	if err == nil {
		report.FellBack()
	}
	return resp, err
}

// A schema lists the fields of an object, in the order of the struct.
type schema struct {
	id    int
	place string   // the path to it
	names []string // with quotes and colon: "bin":
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

const schemas, maxFields = 13, 63

// An order maps each field to the next one. The first field of an object is at 0.
type order [schemas][maxFields + 1]uint8

var documented order

func schemaOf[T any](id int, place string) *schema {
	s := &schema{id: id, place: place}
	for field := range reflect.TypeFor[T]().Fields() {
		if name := field.Tag.Get("json"); name != "-" && field.IsExported() {
			documented[id][len(s.names)] = uint8(len(s.names))
			s.names = append(s.names, `"`+name+`":`)
		}
	}
	return s
}

// response reads a whole response, or returns false.
func (s *scanner) response() (*LookupResponse, bool) {
	resp := new(LookupResponse)
	s.object(responseSchema, &resp.Cards)
	s.next()
	return resp, !s.gaveUp && s.at == len(s.body)
}

// An item allocates all that an item of a response points to in one piece.
type item struct {
	data Data
	card Card
	echo string // what PANOrToken points to
}

// value reads the next value into a zero target. Null leaves it zero.
func (s *scanner) value(target any) {
	first := s.next()
	if first == 'n' {
		s.word("null")
		return
	}
	switch v := target.(type) {
	case *string:
		*v = s.text()
	case *Optional[bool]:
		switch first {
		case 't':
			s.word("true")
			*v = Stated(true)
		case 'f':
			s.word("false")
			*v = Stated(false)
		default:
			s.unusual(v)
		}
	case *Optional[int64]:
		if n, ok := s.integer(); ok {
			*v = Stated(n)
		} else {
			s.unusual(v)
		}
	case *Identifier:
		if s.item.echo = s.text(); s.item.echo != "" {
			*v = Identifier{value: &s.item.echo}
		}
	case *json.RawMessage:
		*v = bytes.Clone(s.skip())
	case *[]Result:
		*v = elements(s, make([]Result, 0, s.expected), s.result)
	case *Result:
		s.object(resultSchema, &v.BIN, &v.Data, &v.Error)
	case **Data:
		s.item = new(item)
		*v = &s.item.data
		s.object(dataSchema, &(*v).Card)
	case **Card:
		*v = &s.item.card
		s.card(*v)
	case *Number:
		s.object(numberSchema, &v.Length)
	case *[]AdditionalCardBrand:
		*v = elements(s, []AdditionalCardBrand{}, func(b *AdditionalCardBrand) { s.value(b) })
	case *AdditionalCardBrand:
		s.object(brandSchema, &v.CardBrand, &v.BINMax, &v.BINMin, &v.CardBrandProduct, &v.CardBrandBankName,
			&v.EcomEnabled, &v.BillpayEnabled)
	case *Product:
		s.object(productSchema, &v.ProductID, &v.ProductName)
	case *Bank:
		s.object(bankSchema, &v.Name, &v.Phone, &v.URL, &v.CleanName)
	case *Country:
		s.object(countrySchema, &v.Alpha2, &v.Numeric, &v.Name)
	case *Authentication:
		s.object(authenticationSchema, &v.AuthenticationRequired, &v.AuthenticationName)
	case *Cost:
		s.object(costSchema, &v.Interchange)
	case *Interchange:
		s.object(interchangeSchema, &v.Regulated, &v.RegulatedName, &v.Notes, &v.Domestic, &v.Inter, &v.Intra)
	case *InterchangeCap:
		schema := intraSchema
		if caps := &s.item.card.Cost.Interchange; v == &caps.Domestic {
			schema = domesticSchema
		} else if v == &caps.Inter {
			schema = interSchema
		}
		s.object(schema, &v.CapRegionShortname, &v.CapAdvaloremAmount, &v.CapTypeName, &v.CapFixedAmount,
			&v.CapTypeQualifierCurrency, &v.CapTypeQualifierText, &v.CapTypeQualifierLower, &v.CapTypeQualifierUpper)
	}
}

func (s *scanner) card(c *Card) {
	s.object(cardSchema, &c.Number, &c.BINLength, &c.SVCBINLength, &c.BINMin, &c.BINMax, &c.PANOrToken, &c.VirtualCard,
		&c.Level2, &c.Level3, &c.ALM, &c.AccountUpdater, &c.DomesticOnly, &c.GamblingBlocked, &c.IssuerCurrency,
		&c.Reloadable, &c.AdditionalCardBrands, &c.CardBrand, &c.CardSegmentType, &c.ComboCard, &c.Type,
		&c.FundingSource, &c.Prepaid, &c.Product, &c.Bank, &c.Country, &c.Authentication, &c.Cost, &c.NetworkFees,
		&c.CorrelationID, &c.IssuerSupportsTokenization, &c.MultiAccountAccessIndicator, &c.SharedBIN,
		&c.FlaggedForDeleteRemainingWks)
}

func elements[T any](s *scanner, list []T, read func(*T)) []T {
	for ok := s.enter('[', ']'); ok; ok = s.more(']') {
		s.count()
		list = append(list, *new(T))
		read(&list[len(list)-1])
	}
	return list
}

func (s *scanner) result(r *Result) {
	s.texts.Reset()
	s.room, s.kept = min(max(s.kept, s.room), maxRoom), 0
	s.next()
	start := s.at
	s.value(r)
	if s.keepRaw {
		r.Raw = bytes.Clone(s.body[start:s.at])
	}
}

// unusual reads a value of a type with special rules.
func (s *scanner) unusual(v json.Unmarshaler) {
	if text := s.skip(); s.gaveUp || v.UnmarshalJSON(text) != nil {
		s.giveUp()
	}
}

// object reads an object's fields into targets, in the order of its schema. The fields
// are expected in the order of the object before.
func (s *scanner) object(o *schema, targets ...any) {
	s.count()
	var read uint64
	expected := &s.order[o.id][0]
	for ok := s.enter('{', '}'); ok; ok = s.more('}') {
		field := s.field(o, int(*expected))
		if field < 0 {
			s.skip()
			continue
		}
		if read&(1<<field) != 0 {
			s.giveUp() // encoding/json merges the two
			return
		}
		read |= 1 << field
		*expected = uint8(field)
		expected = &s.order[o.id][field+1]
		s.value(targets[field])
	}
}

// count bounds the memory that a small text can expand to.
func (s *scanner) count() {
	if s.objects++; s.objects > maxObjects {
		s.giveUp()
	}
}

// field reads a field's name and returns its index, or -1 if the field is unknown. It tries
// the expected field first.
func (s *scanner) field(o *schema, expected int) int {
	s.next()
	if name := o.names[expected]; s.hasNext(name) {
		s.at += len(name)
		return expected
	}
	name, plain := s.quoted()
	s.next()
	if s.word(":"); !plain {
		s.giveUp()
	}
	for i, known := range o.names {
		if known = known[1 : len(known)-2]; string(name) == known {
			return i
		} else if strings.EqualFold(string(name), known) {
			s.giveUp() // encoding/json ignores the case of names
		}
	}
	s.report.UnknownMember(o.place, name)
	return -1
}
