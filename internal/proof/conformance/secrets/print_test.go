package secrets_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// A canary is a value planted in one place. Nothing that the library prints may
// hold it.
//
// The exceptions are few. A caller who reveals an Identifier, reads an exported
// field, or encodes a request, a record or a result as JSON asks for the data
// itself. And fmt calls no method of what sits in an unexported field, so that
// exported fields of a plain type, such as Error.Body, show there: data alone,
// for no credential, id, address or error of the caller's is ever in such a
// field.
type canary struct {
	value string
	data  bool // may be held whole by an exported field, and by JSON that is not an error's
}

// forms are what of a value may not be in a text.
func (c canary) forms() []string {
	forms := testkit.Encodings(c.value)
	if strings.Trim(c.value, "0123456789") == "" {
		// A mask shows six digits at most, and eight of a BIN.
		forms = append(forms, c.value[:9])
	}
	return forms
}

// A finder looks for many canaries in one pass over a text.
type finder map[string][]find

type find struct{ place, form string }

const findBy = 4 // bytes, a form's first ones

func newFinder(canaries map[string]canary) finder {
	f := finder{}
	for place, c := range canaries {
		for _, form := range c.forms() {
			f[form[:findBy]] = append(f[form[:findBy]], find{place, form})
		}
	}
	return f
}

// in returns the form in which each canary shows in a text, by its place.
func (f finder) in(text string) map[string]string {
	var found map[string]string
	for i := range len(text) - findBy + 1 {
		for _, candidate := range f[text[i:i+findBy]] {
			if strings.HasPrefix(text[i:], candidate.form) {
				if found == nil {
					found = map[string]string{}
				}
				found[candidate.place] = candidate.form
			}
		}
	}
	return found
}

type (
	inExported   struct{ V any }
	inUnexported struct{ v any }
)

// A shape is a value as it may reach a printer. What is nested is out of reach
// of slog.LogValuer, and what is hidden is out of reach of fmt.Formatter, too.
type shape struct {
	name           string
	v              any
	nested, hidden bool
}

// shapes yields a value and a pointer to it, alone and inside of other values.
func shapes(v any) iter.Seq[shape] {
	forms := map[string]any{"": v}
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && !r.IsNil() {
		forms["value of "] = r.Elem().Interface()
	} else if r.IsValid() {
		p := reflect.New(r.Type())
		p.Elem().Set(r)
		forms["pointer to "] = p.Interface()
	}
	return func(yield func(shape) bool) {
		for prefix, v := range forms {
			for _, s := range []shape{
				{"itself", v, false, false},
				{"in a slice", []any{v}, true, false},
				{"in a map", map[string]any{"k": v}, true, false},
				{"in an exported field", inExported{v}, true, false},
				{"in an exported field of a pointer", &inExported{v}, true, false},
				{"in an unexported field", inUnexported{v}, true, true},
				{"in an unexported field of a pointer", &inUnexported{v}, true, true},
			} {
				s.name = prefix + s.name
				if !yield(s) {
					return
				}
			}
		}
	}
}

const slogJSON = "slog JSON"

// prints yields what fmt and slog make of a value, and the runtime of a panic with it, by
// printer.
func prints(v any) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "% x", "%t"} {
			if !yield(verb, fmt.Sprintf(verb, v)) {
				return
			}
		}
		var text, object bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&object, nil)} {
			logger := slog.New(handler).With("with", v)
			logger.Info("message", slog.Any("any", v))
		}
		if !yield("slog text", text.String()) || !yield(slogJSON, object.String()) {
			return
		}
		switch v := v.(type) {
		case error:
			encoded, err := json.Marshal(v)
			if !yield("JSON", fmt.Sprint(string(encoded), err)) || !yield("a panic", v.Error()) {
				return
			}
		case fmt.Stringer:
			if !yield("a panic", v.String()) {
				return
			}
		}
	}
}

// held lists what can be read through exported fields without calling a method.
func held(v reflect.Value, list []string) []string {
	switch v.Kind() {
	case reflect.String:
		return append(list, v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return held(v.Elem(), list)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(list, string(v.Bytes()))
		}
		for i := range v.Len() {
			list = held(v.Index(i), list)
		}
	case reflect.Map:
		for key, element := range v.Seq2() {
			list = held(element, held(key, list))
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				list = held(value, list)
			}
		}
	}
	return list
}

// checkPrints fails the test for every canary in anything that prints v.
func checkPrints(t *testing.T, name string, v any) {
	t.Helper()
	fields := strings.Join(held(reflect.ValueOf(v), nil), "\n")
	_, isError := v.(error)
	_, isRefund := v.(*refunds.Refund)
	reported := map[string]bool{}
	for s := range shapes(v) {
		for printer, text := range prints(s.v) {
			for place, form := range secrets.in(text) {
				c := plants[place]
				switch {
				case isRefund && (place == "refund: RefundID" || place == "refund: Currency"): // as documented
				case c.data && s.hidden && strings.Contains(fields, c.value):
				case c.data && s.nested && printer == slogJSON && !isError:
				case reported[place]:
				default:
					reported[place] = true
					t.Errorf("%s (%T), %s, printed with %s, shows the canary of %s as %.40q in\n\t%.300s",
						name, v, s.name, printer, place, form, text)
				}
			}
		}
	}
}
