package bins

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/internal/fault"
)

var errNoObject = fault.NewError("the item is not a JSON object", ErrBadResponse)

// oddValue reads a value of another type than the documented one into its zero target, if
// that loses nothing. Otherwise the target stays zero, and the place is named in the result.
func (s *scanner) oddValue(target any, place string) {
	text := s.skip()
	if s.gaveUp {
		return
	}
	read := false
	isScalar := text[0] != '{' && text[0] != '['
	switch v := target.(type) {
	case *[]Result:
		s.refuse("cards has another type")
		return
	case *Result:
		v.Err = errNoObject
	case *string:
		if read = isScalar; read {
			*v = s.keep(text)
		}
	case *errorText:
		if read = true; !fault.SaysNothing(text) {
			*v = errorText(s.keep(text))
		}
	case *Identifier:
		if read = isScalar; read {
			s.item.echo = s.keep(text)
			*v = Identifier{value: &s.item.echo}
		}
	case *Optional[bool]:
		read = v.UnmarshalJSON(text) == nil
	case *Optional[int64]:
		read = v.UnmarshalJSON(text) == nil
	case *json.RawMessage:
		*v, read = bytes.Clone(text), true
	}
	if path := strings.TrimPrefix(place, resultSchema.place+"."); !read && !slices.Contains(s.unread, path) {
		s.unread = append(s.unread, path)
	}
}
