// Package drift finds what a service does that its contract does not say, so that
// the client's log can tell it once: members that are new, members of another type,
// responses that take the slow decoder, and what the service says of its own end. It
// keeps names, and no value.
package drift

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A Finding is one deviation. Both its texts may be printed.
type Finding struct{ Kind, Place string }

// A Report collects what one response showed. Nil collects nothing.
type Report struct {
	Listening bool   // the findings will be logged
	odd       []fact // that the decoder met, if they are new
	compared  bool   // all that is odd is found
	found     []Finding
}

// Odd is for a decoder that meets a member which the contract does not have, or not
// so, in an object of that place. If that is new, Compare takes a closer look; else it
// costs one look into a map. It is new until a comparison was told: a response that
// cannot be read has none.
func (r *Report) Odd(place string, member []byte) {
	if r == nil || !r.Listening || !isNew("", place, harmless(member)) {
		return
	}
	if odd := (fact{"", place, string(harmless(member))}); !slices.Contains(r.odd, odd) && len(r.odd) < maxMet {
		r.odd = append(r.odd, odd)
	}
}

// Compare looks for what of a response is not in typ, which has all that the contract
// has, if the decoder met anything odd or had to fall back to the slow one.
func (r *Report) Compare(body []byte, typ reflect.Type, fellBack bool) {
	if r == nil || !r.Listening || r.odd == nil && !fellBack || !json.Valid(body) {
		return
	}
	if fellBack {
		r.add("fallback decoder", "response body")
	}
	r.compare(bytes.TrimSpace(body), typ, "")
	r.compared = true
}

// CompareError does so with the body of a failure and the documented error object. A
// body without one is a gateway's, whose contract is another.
func (r *Report) CompareError(body []byte) {
	var members map[string]json.RawMessage
	if r.Listening && json.Unmarshal(body, &members) == nil && members["error"] != nil {
		r.compare(bytes.TrimSpace(body), reflect.TypeFor[errorBody](), "")
	}
}

// errorBody is the error object of the download endpoint.
type errorBody struct {
	Error struct {
		Code    string          `json:"code"`
		Message string          `json:"message"`
		Details json.RawMessage `json:"details"`
	} `json:"error"`
}

// News returns what this process meets for the first time in responses to a route.
func (r *Report) News(route string, h http.Header) (news []Finding) {
	for _, name := range [...]string{"Deprecation", "Sunset"} {
		if len(h[name]) > 0 {
			r.add(strings.ToLower(name), "response header")
		}
	}
	for _, f := range r.found {
		if remember(fact{f.Kind, route, f.Place}) {
			news = append(news, f)
		}
	}
	for _, odd := range r.odd {
		if r.compared {
			remember(odd)
		}
	}
	r.odd, r.compared, r.found = nil, false, nil
	return news
}

func (r *Report) add(kind, place string) {
	if f := (Finding{kind, place}); !slices.Contains(r.found, f) && len(r.found) < maxMet {
		r.found = append(r.found, f)
	}
}

// begins has the bytes that the JSON of a kind begins with. Null may stand for any.
var begins = map[reflect.Kind]string{
	reflect.Struct: "{", reflect.Map: "{", reflect.Slice: "[", reflect.String: `"`, reflect.Bool: "tf", reflect.Int64: "-0123456789",
}

// compare walks through a document beside its type.
func (r *Report) compare(text []byte, typ reflect.Type, place string) {
	typ = documented(typ)
	switch kind := typ.Kind(); {
	case text[0] == 'n':
	case strings.IndexByte(begins[kind], text[0]) < 0, kind == reflect.Int64 && bytes.ContainsAny(text, ".eE"):
		r.add("another type", cmp.Or(place, "response body"))
	case kind == reflect.Slice:
		var elements []json.RawMessage
		_ = json.Unmarshal(text, &elements)
		for _, element := range elements {
			r.compare(element, typ.Elem(), place)
		}
	case kind == reflect.Struct:
		var members map[string]json.RawMessage
		_ = json.Unmarshal(text, &members)
		for name, member := range members {
			path := strings.TrimPrefix(place+"."+string(harmless([]byte(name))), ".")
			field, known := typ.FieldByNameFunc(func(field string) bool {
				f, _ := typ.FieldByName(field)
				return f.Tag.Get("json") == name
			})
			if known {
				r.compare(member, field.Type, path)
			} else {
				r.add("unknown member", path)
			}
		}
	}
}

// documented is a type with the JSON that the contract has: an object with any
// contents for raw JSON, and that of the field value for a type that reads itself.
func documented(typ reflect.Type) reflect.Type {
	switch {
	case typ == reflect.TypeFor[json.RawMessage]():
		return reflect.TypeFor[map[string]any]()
	case reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()):
		value, _ := typ.FieldByName("value")
		return documented(value.Type)
	case typ.Kind() == reflect.Pointer:
		return documented(typ.Elem())
	}
	return typ
}

// A fact is a kind, where it was met, and the name.
type fact [3]string

// memory is what this process has met. It is bounded, as the names are the service's.
var memory = struct {
	sync.Mutex
	met map[fact]bool
}{met: map[fact]bool{}}

const maxMet = 512

// Forget makes everything new again, for tests.
func Forget() {
	memory.Lock()
	defer memory.Unlock()
	clear(memory.met)
}

// isNew tells whether a fact could be remembered.
func isNew(kind, place string, name []byte) bool {
	memory.Lock()
	defer memory.Unlock()
	return !memory.met[fact{kind, place, string(name)}] && len(memory.met) < maxMet
}

// remember tells whether f is new to the memory, and has room there.
func remember(f fact) bool {
	memory.Lock()
	defer memory.Unlock()
	if memory.met[f] || len(memory.met) >= maxMet {
		return false
	}
	memory.met[f] = true
	return true
}

// harmless returns a name that can be nobody's number, and "*" in place of any other:
// one that is long, has more than four digits, begins with one, or has two in a row.
func harmless(name []byte) []byte {
	digits, afterDigit := 0, true
	for _, c := range name {
		digit := '0' <= c && c <= '9'
		if digit {
			digits++
		}
		if digit && afterDigit || !digit && strings.IndexByte(letters, c) < 0 {
			return other
		}
		afterDigit = digit
	}
	if len(name) == 0 || len(name) > 40 || digits > 4 {
		return other
	}
	return name
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-"

var other = []byte("*")
