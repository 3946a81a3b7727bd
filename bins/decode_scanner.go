package bins

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A scanner reads a response. It gives up at a syntax error.
type scanner struct {
	body     []byte
	at       int
	gaveUp   bool
	refusal  string // why it gave up, if not at a syntax error
	keepRaw  bool
	expected int             // expected number of items
	objects  int             // objects so far
	elements int             // elements of arrays so far
	order    order           // the last order of fields
	item     *item           // the item being read
	texts    strings.Builder // the strings of one item, in one piece
	room     int             // guess of the bytes for them, the maximum so far
	kept     int             // bytes used
	unread   []string        // members of the item that could not be read
}

const tooMany = "too many members"

func (s *scanner) giveUp() {
	s.gaveUp, s.at = true, len(s.body)
}

// refuse gives up for another reason than a syntax error.
func (s *scanner) refuse(why string) {
	if !s.gaveUp {
		s.refusal = why
	}
	s.giveUp()
}

// next returns the byte that begins the next token; 0 at the end.
func (s *scanner) next() byte {
	if s.at < len(s.body) && s.body[s.at] > ' ' {
		return s.body[s.at]
	}
	return s.afterSpace()
}

func (s *scanner) afterSpace() byte {
	for ; s.at < len(s.body); s.at++ {
		if c := s.body[s.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

// enter steps into an object or an array, and reports whether it has contents.
func (s *scanner) enter(opening, closing byte) bool {
	if s.next() != opening {
		s.giveUp()
		return false
	}
	s.at++
	if s.next() == closing {
		s.at++
		return false
	}
	return true
}

// more steps over the byte after a member or an element, and reports whether another one
// follows.
func (s *scanner) more(closing byte) bool {
	c := s.next()
	if c != ',' && c != closing {
		s.giveUp()
		return false
	}
	s.at++
	return c == ','
}

func (s *scanner) hasNext(token string) bool {
	rest := s.body[s.at:]
	return len(rest) >= len(token) && string(rest[:len(token)]) == token
}

func (s *scanner) word(w string) {
	if !s.hasNext(w) {
		s.giveUp()
		return
	}
	s.at += len(w)
}

// quoted reads a string, and reports whether it has no escapes.
func (s *scanner) quoted() (inside []byte, plain bool) {
	if s.next() != '"' {
		s.giveUp()
		return nil, true
	}
	rest := s.body[s.at+1:]
	plain, ascii := true, true
	for end := 0; ; {
		end += indexSpecial(rest[end:])
		if end == len(rest) || rest[end] < ' ' {
			s.giveUp()
			return nil, true
		}
		switch rest[end] {
		case '"':
			s.at += end + 2
			return rest[:end], plain && (ascii || utf8.Valid(rest[:end]))
		case '\\':
			plain = false
			end = min(end+2, len(rest))
		default:
			for ascii = false; end < len(rest) && rest[end] >= utf8.RuneSelf; end++ {
			}
		}
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// indexSpecial returns the index of the first byte that needs an escape or may not be ASCII,
// or len(b). It compares eight bytes at a time. In each test the lowest byte that it finds is
// correct.
func indexSpecial(b []byte) int {
	i := 0
	for ; len(b)-i >= 8; i += 8 {
		eight := binary.LittleEndian.Uint64(b[i:])
		quote, escape := eight^ones*'"', eight^ones*'\\'
		found := ((quote-ones)&^quote | (escape-ones)&^escape | (eight-ones*' ')&^eight | eight) & highs
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			return i
		}
	}
	return i
}

// text reads a string, if one comes next.
func (s *scanner) text() (_ string, ok bool) {
	if s.next() != '"' {
		return "", false
	}
	start := s.at
	inside, plain := s.quoted()
	if plain {
		return s.keep(inside), true
	}
	return s.unescaped(start), true
}

// unescaped returns the value of the string that begins at start and was just read.
func (s *scanner) unescaped(start int) (text string) {
	if json.Unmarshal(s.body[start:s.at], &text) != nil {
		s.giveUp()
	}
	return text
}

// maxRoom bounds the guess of the memory for an item's strings.
const maxRoom = 4 << 10

// keep copies a string into the buffer of its item. So an item keeps alive its own strings,
// but not those of other items or the response.
func (s *scanner) keep(text []byte) string {
	if s.texts.Cap()-s.texts.Len() < len(text) {
		s.texts.Reset()
		s.texts.Grow(max(len(text), s.room))
	}
	start := s.texts.Len()
	s.texts.Write(text)
	s.kept += len(text)
	return s.texts.String()[start:]
}

// integer reads an integer, if one comes next.
func (s *scanner) integer() (n int64, ok bool) {
	text := s.body[s.at : s.at+max(0, bytes.IndexAny(s.body[s.at:], ",}] \t\r\n"))]
	digits := bytes.TrimPrefix(text, []byte("-"))
	if len(digits) == 0 || digits[0] == '+' || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, false
	}
	s.at += len(text)
	return n, true
}

// skip reads any value, and returns its text.
func (s *scanner) skip() []byte {
	start, depth := s.at, 0
	for inside := true; inside; inside = depth > 0 && !s.gaveUp {
		switch s.next() {
		case '"':
			s.quoted()
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			depth--
			s.at++
		case ',', ':':
			s.at++
		default: // a number or a word
			end := bytes.IndexAny(s.body[s.at:], `,:{}[]"`+" \t\r\n")
			if s.at += end; end <= 0 {
				s.giveUp()
			}
		}
	}
	text := s.body[start:s.at]
	if !json.Valid(text) {
		s.giveUp()
	}
	return text
}

const schemas, maxFields = 13, 63

// An order maps each field to the next one. The first field of an object is at 0.
type order [schemas][maxFields + 1]uint8

// An item allocates all that an item of a response points to in one piece.
type item struct {
	data Data
	card Card
	echo string // what PANOrToken points to
}
