package bins

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// A shape is an object's members, in the order of the struct's fields.
type shape struct {
	id    int
	names []string // as they begin a member behind another: ,"bin":
}

var (
	responseShape       = shapeOf[LookupResponse](0)
	resultShape         = shapeOf[Result](1)
	dataShape           = shapeOf[Data](2)
	cardShape           = shapeOf[Card](3)
	numberShape         = shapeOf[Number](4)
	brandShape          = shapeOf[AdditionalCardBrand](5)
	productShape        = shapeOf[Product](6)
	bankShape           = shapeOf[Bank](7)
	countryShape        = shapeOf[Country](8)
	authenticationShape = shapeOf[Authentication](9)
	costShape           = shapeOf[Cost](10)
	interchangeShape    = shapeOf[Interchange](11)
	capShape            = shapeOf[InterchangeCap](12)
)

const shapes, maxNames = 13, 63

// An order tells which member comes after each, the first of an object being at 0.
type order [shapes][maxNames + 1]uint8

var documented order

func shapeOf[T any](id int) *shape {
	s := &shape{id: id}
	for field := range reflect.TypeFor[T]().Fields() {
		if name := field.Tag.Get("json"); name != "-" {
			documented[id][len(s.names)] = uint8(len(s.names))
			s.names = append(s.names, `,"`+name+`":`)
		}
	}
	return s
}

// response reads a whole answer, or returns false.
func (s *scanner) response() (*LookupResponse, bool) {
	resp := new(LookupResponse)
	s.object(responseShape, &resp.Cards)
	s.next()
	return resp, !s.gaveUp && s.at == len(s.body)
}

// An item is what an item of an answer points to, in one piece.
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
		if n, ok := s.shortInteger(); ok {
			*v = Stated(n)
		} else {
			s.unusual(v)
		}
	case *Identifier:
		if s.item.echo = s.text(); s.item.echo != "" {
			*v = Identifier{value: &s.item.echo}
		}
	case *json.RawMessage:
		*v = bytes.Clone(s.skip(0))
	case *[]Result:
		*v = elements(s, make([]Result, 0, s.expected), s.result)
	case *Result:
		s.object(resultShape, &v.BIN, &v.Data, &v.Error)
	case **Data:
		s.item = new(item)
		*v = &s.item.data
		s.object(dataShape, &(*v).Card)
	case **Card:
		*v = &s.item.card
		s.card(*v)
	case *Number:
		s.object(numberShape, &v.Length)
	case *[]AdditionalCardBrand:
		*v = elements(s, []AdditionalCardBrand{}, func(b *AdditionalCardBrand) { s.value(b) })
	case *AdditionalCardBrand:
		s.object(brandShape, &v.CardBrand, &v.BINMax, &v.BINMin, &v.CardBrandProduct, &v.CardBrandBankName,
			&v.EcomEnabled, &v.BillpayEnabled)
	case *Product:
		s.object(productShape, &v.ProductID, &v.ProductName)
	case *Bank:
		s.object(bankShape, &v.Name, &v.Phone, &v.URL, &v.CleanName)
	case *Country:
		s.object(countryShape, &v.Alpha2, &v.Numeric, &v.Name)
	case *Authentication:
		s.object(authenticationShape, &v.AuthenticationRequired, &v.AuthenticationName)
	case *Cost:
		s.object(costShape, &v.Interchange)
	case *Interchange:
		s.object(interchangeShape, &v.Regulated, &v.RegulatedName, &v.Notes, &v.Domestic, &v.Inter, &v.Intra)
	case *InterchangeCap:
		s.object(capShape, &v.CapRegionShortname, &v.CapAdvaloremAmount, &v.CapTypeName, &v.CapFixedAmount,
			&v.CapTypeQualifierCurrency, &v.CapTypeQualifierText, &v.CapTypeQualifierLower, &v.CapTypeQualifierUpper)
	default:
		s.giveUp()
	}
}

func (s *scanner) card(c *Card) {
	s.object(cardShape, &c.Number, &c.BINLength, &c.SVCBINLength, &c.BINMin, &c.BINMax, &c.PANOrToken, &c.VirtualCard,
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
	if text := s.skip(0); s.gaveUp || v.UnmarshalJSON(text) != nil {
		s.giveUp()
	}
}

// object reads an object's members into targets, in the order of its shape.
func (s *scanner) object(sh *shape, targets ...any) {
	s.count()
	var read uint64
	follower := &s.followers[sh.id][0]
	for ok := s.enter('{', '}'); ok; ok = s.more('}') {
		place := s.member(sh, int(*follower))
		if place < 0 {
			s.skip(0)
		}
		for place >= 0 {
			if read&(1<<place) != 0 {
				s.giveUp() // encoding/json merges the two
				return
			}
			read |= 1 << place
			*follower = uint8(place)
			follower = &s.followers[sh.id][place+1]
			s.value(targets[place])
			place = int(*follower)
			if !s.hasNext(sh.names[place]) {
				break
			}
			s.at += len(sh.names[place])
		}
	}
}

// count bounds what a small text can unfold to in memory.
func (s *scanner) count() {
	if s.objects++; s.objects > maxObjects {
		s.giveUp()
	}
}

// member reads a member's name and returns its place, which is likely to be the
// one that is expected, or -1 if it is unknown.
func (s *scanner) member(sh *shape, expected int) int {
	s.next()
	if name := sh.names[expected][1:]; s.hasNext(name) {
		s.at += len(name)
		return expected
	}
	name := s.name()
	for place, known := range sh.names {
		if known = known[2 : len(known)-2]; string(name) == known {
			return place
		} else if strings.EqualFold(string(name), known) {
			s.giveUp() // encoding/json takes the one for the other
		}
	}
	return -1
}

// name reads a member's name and the colon.
func (s *scanner) name() []byte {
	name, plain := s.quoted()
	if !plain || s.next() != ':' {
		s.giveUp()
		return nil
	}
	s.at++
	return name
}
