package bins

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/carddata/carddata-go/internal/drift"
	"github.com/carddata/carddata-go/internal/transport"
)

// These bound what a small text can unfold to in memory: a documented response of
// 50 cards has some 3,000 members in 800 objects.
const (
	maxMembers = 100_000
	maxObjects = 10_000
)

// decode reads a response to so many cards. It reads what encoding/json would, by
// a faster way where that is certain, and reports what is not as documented.
func decode(body []byte, keepRaw bool, cards int, report *drift.Report) (*LookupResponse, error) {
	s := scanner{body: body, keepRaw: keepRaw, expected: min(cards, MaxCards), order: documented, report: report}
	resp, ok := s.response()
	if !ok && (bytes.Count(body, []byte(",")) > maxMembers || bytes.Count(body, []byte("{")) > maxObjects) {
		return nil, transport.Unusable("too many members")
	}
	report.Compare(body, reflect.TypeFor[LookupResponse](), !ok)
	switch {
	case ok:
		return resp, nil
	case !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")):
		return nil, transport.Unusable("not an object")
	}
	return decodeSlowly(body, keepRaw)
}

// A schema is the fields of an object, in the order of the struct's.
type schema struct {
	id    int
	place string   // tells it from the others
	names []string // with quotes and colon: "bin":
}

var (
	responseSchema       = schemaOf[LookupResponse](0, "response")
	resultSchema         = schemaOf[Result](1, "result")
	dataSchema           = schemaOf[Data](2, "data")
	cardSchema           = schemaOf[Card](3, "card")
	numberSchema         = schemaOf[Number](4, "number")
	brandSchema          = schemaOf[AdditionalCardBrand](5, "brand")
	productSchema        = schemaOf[Product](6, "product")
	bankSchema           = schemaOf[Bank](7, "bank")
	countrySchema        = schemaOf[Country](8, "country")
	authenticationSchema = schemaOf[Authentication](9, "authentication")
	costSchema           = schemaOf[Cost](10, "cost")
	interchangeSchema    = schemaOf[Interchange](11, "interchange")
	domesticSchema       = schemaOf[InterchangeCap](12, "domestic")
	interSchema          = schemaOf[InterchangeCap](12, "inter")
	intraSchema          = schemaOf[InterchangeCap](12, "intra")
)

const schemas, maxFields = 13, 63

// An order tells which field comes after each, the first of an object being at 0.
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

// An item is what an item of a response points to, in one piece.
type item struct {
	data Data
	card Card
	echo string // what PANOrToken points to
}

// value reads what comes next into a target that is zero, and which null leaves so.
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
		if first != '{' {
			s.report.Odd("networkfees", nil)
		}
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

// unusual reads a value that has its own way to be read.
func (s *scanner) unusual(v json.Unmarshaler) {
	name := s.body[:s.at]
	if text := s.skip(); s.gaveUp || v.UnmarshalJSON(text) != nil {
		s.giveUp()
	} else if text[0] == '"' {
		name = name[:bytes.LastIndexByte(name, '"')]
		s.report.Odd("text", name[bytes.LastIndexByte(name, '"')+1:])
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

// count bounds what a small text can unfold to in memory.
func (s *scanner) count() {
	if s.objects++; s.objects > maxObjects {
		s.giveUp()
	}
}

// field reads a field's name and returns its index, which is likely to be the one that
// is expected, or -1 if the field is unknown.
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
			s.giveUp() // encoding/json takes the one for the other
		}
	}
	s.report.Odd(o.place, name)
	return -1
}
