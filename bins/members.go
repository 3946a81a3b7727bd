package bins

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// A shape is an object's members, in the order of the struct's fields.
type shape struct {
	id     int
	names  []string // as they begin a member: "bin":
	places map[string]int
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

const (
	shapes   = 13
	maxNames = 63
)

func shapeOf[T any](id int) *shape {
	s := &shape{id: id, places: map[string]int{}}
	for field := range reflect.TypeFor[T]().Fields() {
		if name := field.Tag.Get("json"); name != "-" {
			s.places[name] = len(s.names)
			s.names = append(s.names, `"`+name+`":`)
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
	if s.null() {
		return
	}
	switch v := target.(type) {
	case *string:
		*v = s.text()
	case *Optional[bool]:
		switch s.next() {
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
		if inside, plain := s.quoted(); plain {
			s.item.echo = s.keep(inside)
			if s.item.echo != "" {
				*v = Identifier{value: &s.item.echo}
			}
		} else {
			s.giveUp()
		}
	case *json.RawMessage:
		*v = bytes.Clone(s.skip(0))
	case *[]Result:
		*v = s.results()
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
		*v = s.brands()
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

func (s *scanner) results() []Result {
	list := make([]Result, 0, s.expected)
	for ok := s.enter('[', ']'); ok; ok = s.more(']') {
		s.texts.Reset()
		s.room, s.kept = min(max(s.kept, s.room), maxRoom), 0
		list = append(list, Result{})
		r := &list[len(list)-1]
		s.next()
		start := s.at
		if !s.null() {
			s.object(resultShape, &r.BIN, &r.Data, &r.Error)
		}
		if s.keepRaw {
			r.Raw = bytes.Clone(s.body[start:s.at])
		}
	}
	return list
}

func (s *scanner) brands() []AdditionalCardBrand {
	list := []AdditionalCardBrand{}
	for ok := s.enter('[', ']'); ok; ok = s.more(']') {
		list = append(list, AdditionalCardBrand{})
		b := &list[len(list)-1]
		if !s.null() {
			s.object(brandShape, &b.CardBrand, &b.BINMax, &b.BINMin, &b.CardBrandProduct, &b.CardBrandBankName,
				&b.EcomEnabled, &b.BillpayEnabled)
		}
	}
	return list
}

// unusual reads a value that has its own way to be read.
func (s *scanner) unusual(v json.Unmarshaler) {
	if text := s.skip(0); s.gaveUp || v.UnmarshalJSON(text) != nil {
		s.giveUp()
	}
}

// object reads an object's members into targets, in the order of its shape.
func (s *scanner) object(sh *shape, targets ...any) {
	var read uint64
	follower := &s.followers[sh.id][0]
	for ok := s.enter('{', '}'); ok; ok = s.more('}') {
		s.next()
		place := int(*follower)
		if place < len(sh.names) && s.hasNext(sh.names[place]) {
			s.at += len(sh.names[place])
		} else if place = s.member(sh); place < 0 {
			s.skip(0)
			continue
		}
		if read&(1<<place) != 0 {
			s.giveUp() // encoding/json merges the two
			return
		}
		read |= 1 << place
		*follower = uint8(place)
		follower = &s.followers[sh.id][place+1]
		s.value(targets[place])
	}
}

// member reads a member's name and returns its place, or -1 if it is unknown.
func (s *scanner) member(sh *shape) int {
	name := s.name()
	if place, known := sh.places[string(name)]; known {
		return place
	}
	for known := range sh.places {
		if strings.EqualFold(string(name), known) {
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
