package surface_test

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
)

// fields are the leaves of a record by dotted path, with "[]" after arrays, and
// the type of each as the interface calls it.
type fields map[string]string

// documented reads testdata/fields.txt: the fields of the interface, by section.
func documented(t *testing.T) map[string]fields {
	t.Helper()
	text, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]fields)
	var section fields
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "# "); ok {
			section = make(fields)
			sections[title] = section
		} else if path, of, ok := strings.Cut(line, " "); ok {
			section[path] = of
		}
	}
	return sections
}

// declared lists the leaves of a Go type.
func declared(t *testing.T, found fields, path string, of reflect.Type) {
	t.Helper()
	switch of {
	case reflect.TypeFor[bins.Identifier]():
		found[path] = "string"
		return
	case reflect.TypeFor[bins.Optional[bool]](), reflect.TypeFor[*bool]():
		found[path] = "boolean"
		return
	case reflect.TypeFor[bins.Optional[int64]](), reflect.TypeFor[*int64]():
		found[path] = "integer"
		return
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[map[string]any]():
		found[path] = "object"
		return
	}
	switch of.Kind() {
	case reflect.String:
		found[path] = "string"
	case reflect.Pointer:
		declared(t, found, path, of.Elem())
	case reflect.Slice:
		declared(t, found, path+"[]", of.Elem())
	case reflect.Struct:
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "-", !field.IsExported():
			case name == "":
				t.Errorf("%s.%s has no JSON name", of, field.Name)
			default:
				declared(t, found, strings.TrimPrefix(path+"."+name, "."), field.Type)
			}
		}
	default:
		// Neither a bare bool nor a bare int64 can tell null from false and 0.
		t.Errorf("%s has type %s", path, of)
		found[path] = of.String()
	}
}

func TestFieldsAreTheInterfaces(t *testing.T) {
	sections := documented(t)
	for title, of := range map[string]reflect.Type{
		"BIN lookup request":  reflect.TypeFor[bins.LookupRequest](),
		"BIN lookup response": reflect.TypeFor[bins.LookupResponse](),
		"Refund record":       reflect.TypeFor[refunds.Refund](),
	} {
		t.Run(title, func(t *testing.T) {
			want, got := sections[title], make(fields)
			declared(t, got, "", of)
			for _, path := range slices.Sorted(maps.Keys(want)) {
				if got[path] == "" {
					t.Errorf("%s is missing in %s", path, of)
				} else if got[path] != want[path] {
					t.Errorf("%s is documented as %s and declared as %s", path, want[path], got[path])
				}
			}
			for _, path := range slices.Sorted(maps.Keys(got)) {
				if want[path] == "" {
					t.Errorf("%s of %s is not documented", path, of)
				}
			}
		})
	}
}
