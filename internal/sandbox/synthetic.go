package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// SyntheticRange returns the leading digits that all card numbers of a range of
// the synthetic data set share, for an identifier of six digits or more. Ranges
// fill the number space without gaps: of the six-digit prefixes, a third is one
// range each, and the others are divided by 7, 8, 9 or 10 digits.
func SyntheticRange(card string) string {
	depths := [...]int{6, 6, 6, 7, 7, 8, 8, 9, 10}
	depth := depths[hash(card[:6])%uint64(len(depths))]
	if missing := depth - len(card); missing > 0 {
		card += strings.Repeat("0", missing)
	}
	return card[:depth]
}

// SyntheticCard invents the item of an identifier: one of the built-in cards, issued by one
// of some hundred banks, in the identifier's synthetic range. It returns nil unless the
// identifier is a number of six or more digits. The same identifier always gives the same
// item, without stored data.
func SyntheticCard(card string) json.RawMessage {
	if len(card) < 6 || len(card) > panDigits || strings.Trim(card, "0123456789") != "" {
		return nil
	}
	prefix := SyntheticRange(card)
	h := hash(prefix)
	n := uint64(len(programs()))
	return programs()[h%n](prefix, h/n%300)
}

const panDigits = 19

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// programs make items of the built-in cards, with a range and a bank of their own.
var programs = sync.OnceValue(func() (all []func(prefix string, bank uint64) json.RawMessage) {
	cards := parseCards()
	for _, bin := range slices.Sorted(maps.Keys(cards)) {
		plain := string(cards[bin].plain)
		low := bin + strings.Repeat("0", panDigits-len(bin))
		high := bin + strings.Repeat("9", panDigits-len(bin))
		all = append(all, func(prefix string, bank uint64) json.RawMessage {
			return json.RawMessage(strings.NewReplacer(
				`"bin":"`+bin+`"`, `"bin":"`+prefix[:6]+`"`,
				low, prefix+strings.Repeat("0", panDigits-len(prefix)),
				high, prefix+strings.Repeat("9", panDigits-len(prefix)),
				`"bank":{"name":"`, fmt.Sprintf(`"bank":{"name":"%d `, bank),
			).Replace(plain))
		})
	}
	return all
})

// A Format is how the rows of a synthetic result are written.
type Format string

// The formats.
const (
	CSV       Format = "csv"
	JSONArray Format = "json"
)

// A result repeats ten rows with running numbers, so that any two parts of it differ. A
// number has eleven digits, too few for a card number.
const (
	rowsPerCycle = 10
	cycleDigits  = 10
)

// Synthetic returns a result of exactly size bytes, with the columns of job 42 and the column
// row. It generates the same bytes each time, faster than a network can carry them. Line
// breaks fill the rest after the last row. Below 256 bytes the result is cut off.
func Synthetic(format Format, size int64) *io.SectionReader {
	s := &synthetic{head: "row,old_number,new_number,new_expiry,result\n"}
	write, last := row.csv, ""
	if format == JSONArray {
		s.head, s.end = "[\n", "\n]\n"
		write = func(r row, number string) string { return r.json(number) + "," }
		last = rows[0].json(firstNumber(0))
	}
	for i := range rowsPerCycle {
		number := firstNumber(0)[:cycleDigits] + strconv.Itoa(i)
		text := write(rows[i%len(rows)], number)
		s.numbers = append(s.numbers, len(s.cycle)+strings.Index(text, number))
		s.cycle = append(s.cycle, text+"\n"...)
	}
	s.cycles = max(0, size-int64(len(s.head)+len(last)+len(s.end))) / int64(len(s.cycle))
	s.end = strings.Replace(last, firstNumber(0), firstNumber(s.cycles), 1) + s.end
	return io.NewSectionReader(s, 0, size)
}

// firstNumber returns the number of a cycle's first row.
func firstNumber(cycle int64) string { return fmt.Sprintf("%0*d0", cycleDigits, cycle) }

type row struct{ old, new, expiry, result string }

func (r row) csv(number string) string {
	return strings.Join([]string{number, r.old, r.new, r.expiry, r.result}, ",")
}

func (r row) json(number string) string {
	return fmt.Sprintf(`{"row":%q,"old_number":%q,"new_number":%q,"new_expiry":%q,"result":%q}`,
		number, r.old, r.new, r.expiry, r.result)
}

// These are the card schemes' published test numbers.
var rows = []row{
	{"4111111111111111", "4242424242424242", "2031-07", "number_changed"},
	{"5555555555554444", "", "2030-11", "expiry_changed"},
	{"378282246310005", "", "", "unchanged"},
	{"6011111111111117", "", "", "account_closed"},
}

// A synthetic is a head, the cycles, an end, and line breaks without end.
type synthetic struct {
	head, end string
	cycle     []byte
	numbers   []int // positions of the row numbers in it
	cycles    int64
}

// ReadAt never fails: the reader around it knows the size.
func (s *synthetic) ReadAt(p []byte, offset int64) (int, error) {
	head, cycle := int64(len(s.head)), int64(len(s.cycle))
	end := head + s.cycles*cycle
	var scratch []byte
	for n := 0; n < len(p); {
		rest := p[n:]
		switch at := offset + int64(n); {
		case at < head:
			n += copy(rest, s.head[at:])
		case at >= end+int64(len(s.end)):
			rest[0] = '\n'
			n++
		case at >= end:
			n += copy(rest, s.end[at-end:])
		default:
			number, within := (at-head)/cycle, (at-head)%cycle
			if within == 0 && int64(len(rest)) >= cycle {
				s.write(rest[:cycle], number)
				n += int(cycle)
				continue
			}
			if scratch == nil {
				scratch = bytes.Clone(s.cycle)
			}
			s.write(scratch, number)
			n += copy(rest, scratch[within:])
		}
	}
	return len(p), nil
}

func (s *synthetic) write(p []byte, number int64) {
	copy(p, s.cycle)
	var digits [cycleDigits]byte
	for i := range digits {
		digits[len(digits)-1-i] = '0' + byte(number%10)
		number /= 10
	}
	for _, at := range s.numbers {
		copy(p[at:], digits[:])
	}
}
