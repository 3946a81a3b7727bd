package bins

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
)

// A template is what many cards have in common: a Card without its range and
// without what belongs to one card alone.
type template struct {
	common Card
	key    [sha256.Size]byte
	size   int // of its content
	uses   int
}

func newTemplate(card *Card) *template {
	t := &template{common: *card}
	t.common.BINMin, t.common.BINMax = "", ""
	t.common.PANOrToken, t.common.CorrelationID = Identifier{}, ""
	content := appendContent(make([]byte, 0, 1<<10), reflect.ValueOf(&t.common).Elem())
	t.key, t.size = sha256.Sum256(content), len(content)
	return t
}

// appendContent appends all that v holds, so that different values append
// different bytes. JSON would do the same at five times the time.
func appendContent(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.String:
		return append(append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...), 's')
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Struct:
		// Value.Fields would take six times as long; the order does not matter.
		for i := v.NumField() - 1; i >= 0; i-- {
			b = appendContent(b, v.Field(i))
		}
	case reflect.Slice:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		if bytes, ok := v.Interface().(json.RawMessage); ok {
			return append(b, bytes...)
		}
		for i := range v.Len() {
			b = appendContent(b, v.Index(i))
		}
	}
	return b
}

type templates map[[sha256.Size]byte]*template

// share returns the template that is already there for the same card, if any.
func (t templates) share(own *template) *template {
	shared := t[own.key]
	if shared == nil {
		shared = own
		t[own.key] = own
	}
	shared.uses++
	return shared
}

func (t templates) release(shared *template) {
	if shared.uses--; shared.uses == 0 {
		delete(t, shared.key)
	}
}

// card returns a Card of the caller's own.
func (t *template) card() *Card {
	card := t.common
	card.AdditionalCardBrands = slices.Clone(card.AdditionalCardBrands)
	card.NetworkFees = bytes.Clone(card.NetworkFees)
	return &card
}
