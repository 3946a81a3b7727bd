package bins

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/carddata/carddata-go/internal/transport"
)

// decodeSlowly reads a response with encoding/json.
func decodeSlowly(body []byte, keepRaw bool) (*LookupResponse, error) {
	resp := new(LookupResponse)
	whole := json.Unmarshal(body, resp)
	var raw struct{ Cards []json.RawMessage }
	if whole != nil || keepRaw {
		if err := json.Unmarshal(body, &raw); err != nil {
			return nil, transport.Malformed(cmp.Or(whole, err))
		}
	}
	if whole != nil && !resp.decodeApart(raw.Cards) {
		return nil, transport.Malformed(whole)
	}
	for i := range resp.Cards {
		if r := &resp.Cards[i]; r.hasCard() && string(r.Data.Card.NetworkFees) == "null" {
			r.Data.Card.NetworkFees = nil
		}
		if keepRaw {
			resp.Cards[i].Raw = raw.Cards[i]
		}
	}
	return resp, nil
}

// decodeApart reads each item on its own, so that one malformed item does not fail the
// others. It reports whether any item could be read.
func (r *LookupResponse) decodeApart(items []json.RawMessage) (any bool) {
	r.Cards = make([]Result, len(items))
	for i, item := range items {
		if json.Unmarshal(item, &r.Cards[i]) == nil {
			any = true
			continue
		}
		var named struct{ BIN string }
		_ = json.Unmarshal(item, &named) // "" if the BIN itself is malformed
		member := strings.Trim(mistyped(item, reflect.TypeFor[Result]()), ".")
		err := transport.NewError(fmt.Sprintf("the item is not the documented JSON: %s has another type", cmp.Or(member, "it")), ErrBadResponse)
		r.Cards[i] = Result{BIN: named.BIN, Err: err}
	}
	return any
}

// mistyped returns the path of the first member that cannot be read, as ".data.card".
func mistyped(text []byte, typ reflect.Type) string {
	switch {
	case reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()):
	case typ.Kind() == reflect.Pointer:
		return mistyped(text, typ.Elem())
	case typ.Kind() == reflect.Slice:
		var elements []json.RawMessage
		_ = json.Unmarshal(text, &elements)
		for _, element := range elements {
			if json.Unmarshal(element, reflect.New(typ.Elem()).Interface()) != nil {
				return mistyped(element, typ.Elem())
			}
		}
	case typ.Kind() == reflect.Struct:
		var members map[string]json.RawMessage
		_ = json.Unmarshal(text, &members)
		for field := range typ.Fields() {
			name := field.Tag.Get("json")
			if member, ok := members[name]; ok && json.Unmarshal(member, reflect.New(field.Type).Interface()) != nil {
				return "." + name + mistyped(member, field.Type)
			}
		}
	}
	return ""
}
