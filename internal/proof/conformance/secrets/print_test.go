package secrets_test

import (
	"encoding/json"
	"fmt"
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

// inUnexported hides a value from fmt.Formatter and slog.LogValuer.
type inUnexported struct{ v any }

// A shape is a value as it may reach a printer.
type shape struct {
	name   string
	v      any
	hidden bool
}

// shapes are a value and a pointer to it, or what a pointer points to, each alone and hidden.
func shapes(v any) []shape {
	other := reflect.New(reflect.TypeOf(v))
	other.Elem().Set(reflect.ValueOf(v))
	otherwise := other.Interface()
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && !r.IsNil() {
		otherwise = r.Elem().Interface()
	}
	return []shape{
		{"itself", v, false}, {"in an unexported field", inUnexported{v}, true},
		{"dereferenced, or a pointer to it", otherwise, false}, {"the same in an unexported field", inUnexported{otherwise}, true},
	}
}

// prints are what fmt, slog and, for an error, JSON make of a value, by printer.
func prints(v any) map[string]string {
	forms := testkit.Printed(v)
	if err, ok := v.(error); ok {
		encoded, failed := json.Marshal(err)
		forms["JSON"] = fmt.Sprint(string(encoded), failed)
		forms["a panic"] = err.Error()
	}
	return forms
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
	_, isRefund := v.(*refunds.Refund)
	reported := map[string]bool{}
	for _, s := range shapes(v) {
		for printer, text := range prints(s.v) {
			for place, form := range secrets.in(text) {
				c := plants[place]
				switch {
				case isRefund && (place == "refund: RefundID" || place == "refund: Currency"): // as documented
				case c.data && s.hidden && strings.Contains(fields, c.value):
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
