package bins

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/fault"
)

// decode reads a response. It gives the same result as encoding/json for all that encoding/json
// can read, but for a name that occurs twice: the last one counts.
func decode(body []byte, keepRaw bool) (*LookupResponse, error) {
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // some programs write a byte order mark first
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return nil, fault.Unusable("not an object")
	}
	resp := new(LookupResponse)
	d := decoder{text: body, keepRaw: keepRaw}
	d.read(reflect.ValueOf(resp).Elem(), &responseMember)
	d.next()
	switch {
	case d.failed || d.at < len(d.text):
		return nil, fault.Malformed(json.Unmarshal(body, new(json.RawMessage)))
	case d.parts > maxParts:
		return nil, fault.Unusable("too many members")
	case d.unread != nil:
		return nil, fault.Unusable("cards has another type")
	}
	return resp, nil
}

// A member is a documented member of a response.
type member struct {
	index   int                // of its field
	path    string             // from the item
	members map[string]*member // of its object, or of the objects in its array
}

var responseMember = member{members: membersOf(reflect.TypeFor[LookupResponse](), "")}

// membersOf returns the members of an object, by name.
func membersOf(t reflect.Type, path string) map[string]*member {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	members := map[string]*member{}
	for field := range t.Fields() {
		name := field.Tag.Get("json")
		if name == "" || name == "-" {
			continue
		}
		m := &member{index: field.Index[0], path: strings.TrimPrefix(path+"."+name, ".")}
		inside := m.path
		if field.Type == reflect.TypeFor[[]Result]() {
			inside = ""
		}
		m.members = membersOf(field.Type, inside)
		members[name] = m
	}
	return members
}

// find returns the member of a quoted name, or nil. As with encoding/json, its case does not
// matter.
func (m *member) find(name []byte) *member {
	if known := m.members[string(name[1:len(name)-1])]; known != nil {
		return known
	}
	text := unquoted(name)
	for known, member := range m.members {
		if strings.EqualFold(known, text) {
			return member
		}
	}
	return nil
}

// A decoder reads JSON. At a syntax error it fails, and steps to the end.
type decoder struct {
	text    []byte
	at      int
	failed  bool
	keepRaw bool
	parts   int      // objects and elements so far
	unread  []string // members of the item that could not be read
}

// maxParts bounds the memory that a small text can expand to. A documented response of 50 cards
// has some 900 objects and elements.
const maxParts = 20_000

// fits counts an object or an element, and reports whether the response may have it.
func (d *decoder) fits() bool {
	d.parts++
	return d.parts <= maxParts
}

var errNoObject = fault.NewError("the item is not a JSON object", ErrBadResponse)

// read reads the next value into v, which is zero. It stays zero if the value is null, or cannot
// be read without a loss because it has another type.
func (d *decoder) read(v reflect.Value, m *member) {
	ok := true
	switch kind := v.Kind(); {
	case m.path == "error":
		v.SetString(errorText(d.skip()))
	case kind == reflect.String:
		var text string
		text, ok = scalar(d.skip())
		v.SetString(text)
	default:
		ok = d.readInto(v.Addr().Interface(), v, m)
	}
	if !ok && !slices.Contains(d.unread, m.path) {
		d.unread = append(d.unread, m.path)
	}
}

// readInto reads the next value into target, which is the address of v.
func (d *decoder) readInto(target any, v reflect.Value, m *member) (ok bool) {
	switch target := target.(type) {
	case *Optional[bool]:
		return target.UnmarshalJSON(d.skip()) == nil
	case *Optional[int64]:
		return target.UnmarshalJSON(d.skip()) == nil
	case *Identifier:
		text, ok := scalar(d.skip())
		*target = NewIdentifier(text)
		return ok
	case *json.RawMessage:
		if text := d.skip(); text[0] != 'n' {
			*target = bytes.Clone(text)
		}
		return true
	case *Result:
		d.result(target, v, m)
		return true
	}
	return d.nested(v, m)
}

func (d *decoder) result(r *Result, v reflect.Value, m *member) {
	d.next()
	start := d.at
	d.unread = nil
	if !d.nested(v, m) {
		r.Err = errNoObject
	}
	r.Unread, d.unread = d.unread, nil
	if d.keepRaw {
		r.Raw = bytes.Clone(d.text[start:d.at])
	}
}

// nested reads an object, an array or null, and reports whether that is what comes next.
func (d *decoder) nested(v reflect.Value, m *member) bool {
	kind := v.Kind()
	switch d.next() {
	case 'n':
		d.skip()
		return true
	case '{':
		if kind == reflect.Pointer {
			v.Set(reflect.New(v.Type().Elem()))
			v, kind = v.Elem(), reflect.Struct
		}
		if kind == reflect.Struct {
			d.object(v, m)
			return true
		}
	case '[':
		if kind == reflect.Slice {
			d.array(v, m)
			return true
		}
	}
	d.skip()
	return false
}

func (d *decoder) object(v reflect.Value, m *member) {
	if !d.fits() {
		d.skip()
		return
	}
	for before := byte('{'); d.steps(before, '}'); before = ',' {
		known := m.find(d.name())
		if known == nil {
			d.skip()
			continue
		}
		field := v.Field(known.index)
		field.SetZero() // members that repeat are not merged
		d.read(field, known)
	}
}

func (d *decoder) array(v reflect.Value, m *member) {
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for before := byte('['); d.steps(before, ']'); before = ',' {
		if !d.fits() {
			d.skip()
			continue
		}
		n := v.Len()
		v.Grow(1)
		v.SetLen(n + 1)
		d.read(v.Index(n), m)
	}
}

// next steps over blanks, and returns the byte that begins the next token; 0 at the end.
func (d *decoder) next() byte {
	for ; d.at < len(d.text); d.at++ {
		if c := d.text[d.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

func (d *decoder) fail() { d.failed, d.at = true, len(d.text) }

// steps steps over the opening bracket or the comma before a member or an element, or over the
// closing bracket if there is none.
func (d *decoder) steps(before, closing byte) bool {
	switch c := d.next(); {
	case c == closing:
		d.at++
		return false
	case c != before:
		d.fail()
		return false
	}
	d.at++
	if before != ',' && d.next() == closing {
		d.at++
		return false
	}
	return true
}

// name steps over a name and its colon, and returns the name.
func (d *decoder) name() []byte {
	if d.next() != '"' {
		d.fail()
	}
	name := d.skip()
	if d.next() != ':' {
		d.fail()
		return name
	}
	d.at++
	return name
}

// skip steps over the next value, and returns its text.
func (d *decoder) skip() []byte {
	first := d.next()
	start := d.at
	switch first {
	case '"':
		if d.skipString() {
			return d.text[start:d.at]
		}
	case '{', '[':
		d.skipNested()
	default:
		for d.at < len(d.text) && d.text[d.at] > ' ' && bytes.IndexByte([]byte(",]}"), d.text[d.at]) < 0 {
			d.at++
		}
	}
	text := d.text[start:d.at]
	switch string(text) {
	case "true", "false", "null":
		return text
	}
	if !json.Valid(text) {
		d.fail()
		return []byte("null")
	}
	return text
}

// skipString steps over a string, and reports whether it is certainly valid.
func (d *decoder) skipString() (valid bool) {
	valid = true
	for d.at++; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; {
		case c == '"':
			d.at++
			return valid
		case c == '\\' && d.at < len(d.text)-1:
			d.at++
			valid = false
		case c < ' ':
			valid = false
		}
	}
	return false
}

// skipNested steps over an object or an array, valid or not.
func (d *decoder) skipNested() {
	for depth := 0; ; {
		switch d.next() {
		case 0:
			return
		case '"':
			d.skipString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if d.at++; depth == 0 {
			return
		}
	}
}

// scalar returns a string, or the text of a number or a boolean as it was written.
func scalar(text []byte) (_ string, ok bool) {
	switch text[0] {
	case 'n':
		return "", true
	case '{', '[':
		return "", false
	case '"':
		return unquoted(text), true
	}
	return string(text), true
}

func unquoted(text []byte) string {
	if inside := text[1 : len(text)-1]; bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside)
	}
	var s string
	_ = json.Unmarshal(text, &s) // it is valid
	return s
}

// errorText returns what an item's error says: a string, or any other value as it was written.
func errorText(text []byte) string {
	if text[0] == '"' {
		return unquoted(text)
	}
	if fault.SaysNothing(text) {
		return ""
	}
	return string(text)
}
