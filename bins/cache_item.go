package bins

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/carddata/carddata-go/internal/mask"
)

// isKnown reports whether a result without the fields of a single card has a card that states
// anything, and no error.
func (r *Result) isKnown() bool {
	if !r.hasCard() || r.Error != "" {
		return false
	}
	card := *r.Data.Card
	if len(card.AdditionalCardBrands) == 0 {
		card.AdditionalCardBrands = nil
	}
	return !reflect.ValueOf(card).IsZero()
}

// inspect returns the bytes that the texts of a result take, and whether one may hold a full card
// number.
func (r *Result) inspect() (size int64, mayHoldNumber bool) {
	var i inspection
	i.value(reflect.ValueOf(r).Elem(), responseMember.members["cards"])
	return i.size, i.mayHoldNumber
}

type inspection struct {
	size          int64
	mayHoldNumber bool
}

func (i *inspection) value(v reflect.Value, m *member) {
	switch value := v.Addr().Interface().(type) {
	case *string:
		i.text(*value, m)
	case *Optional[int64]:
		i.text(strconv.FormatInt(value.value, 10), m)
	case *json.RawMessage:
		i.text(string(*value), m)
		i.mayHoldNumber = i.mayHoldNumber || bytes.Contains(*value, []byte(`\u`)) // perhaps a digit
	default:
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				i.value(v.Elem(), m)
			}
		case reflect.Slice:
			i.size += int64(v.Type().Elem().Size()) * int64(v.Len())
			for n := range v.Len() {
				i.value(v.Index(n), m)
			}
		case reflect.Struct:
			for _, inside := range m.members {
				i.value(v.Field(inside.index), inside)
			}
		}
	}
}

func (i *inspection) text(text string, m *member) {
	if text == "" {
		return
	}
	const rounding = 8
	i.size += int64(len(text)) + rounding
	if mask.HoldsCardNumber(text) {
		switch m.path[strings.LastIndex(m.path, ".")+1:] {
		case "bin_min", "bin_max", "phone": // they look like card numbers
		default:
			i.mayHoldNumber = true
		}
	}
}
