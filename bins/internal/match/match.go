// Package match finds out which item of a response is for which identifier of the request. It
// knows identifiers, names and positions, and nothing of cards.
package match

import (
	"slices"
	"strings"
	"unicode"
)

// An Item is what an item of a response says about the card that it is for.
type Item struct {
	BIN       string
	Echo      string // the card number or token that it names; "": none
	HasCard   bool
	Low, High string // the BIN range of its card
}

// Find finds the index of each identifier's item, or -1 if the service left it out or the item is
// ambiguous. No identifier may begin with another one: see Apart.
//
// Order, repetition and form of the echo are not documented, so evidence decides. First, an
// item that names an identifier exactly belongs only to that identifier. Then an item that
// fits only one open identifier belongs to it. The position decides last, if there is one
// item for each identifier and no name contradicts the order.
func Find[T any](sent []string, answered []T, item func(*T) Item) []int {
	c := begin(sent, len(answered))
	if c.inOrder(func(i int) bool { return item(&answered[i]).isExact(sent[i]) }) {
		return c.found
	}
	c.items = make([]Item, len(answered))
	for i := range answered {
		c.items[i] = item(&answered[i])
	}
	c.byName()
	if slices.Contains(c.found, -1) && slices.Contains(c.taken, false) && !c.inOrder(c.isNamed) {
		c.compare()
		c.byElimination()
		c.byPosition()
	}
	return c.found
}

type correlation struct {
	sent     []string
	items    []Item
	found    []int
	taken    []bool
	evidence [][]evidence // of identifier and item
}

func begin(sent []string, items int) correlation {
	return correlation{sent: sent, found: slices.Repeat([]int{-1}, len(sent)), taken: make([]bool, items)}
}

func (c *correlation) match(i, j int) { c.found[i], c.taken[j] = j, true }

// inOrder matches all open identifiers by position, if each of their items fits its place.
// Nearly all responses are in order, and comparing all pairs gives the same result in ten
// times the time.
func (c *correlation) inOrder(fits func(i int) bool) bool {
	if len(c.taken) != len(c.sent) {
		return false
	}
	for i, at := range c.found {
		if at != i && (at >= 0 || c.taken[i] || !fits(i)) {
			return false
		}
	}
	for i := range c.found {
		c.match(i, i)
	}
	return true
}

func (i Item) isExact(id string) bool { return i.Echo == id || i.Echo == "" && i.BIN == id }

func (c *correlation) isNamed(i int) bool {
	l := labelOf(&c.items[i])
	return l.rate(c.sent[i]) == names
}

// byName matches the items that name an identifier exactly. If several name the same
// identifier, the first one with a card is its item, and no other identifier gets the rest.
// An item with the full card number or token may also name a BIN. It belongs to the card
// number or token.
func (c *correlation) byName() {
	ids := make(map[string]int, len(c.sent))
	for i, id := range c.sent {
		ids[id] = i
	}
	for _, name := range [...]func(*Item) string{func(i *Item) string { return i.Echo }, func(i *Item) string { return i.BIN }} {
		for j := range c.items {
			item := &c.items[j]
			i, ok := ids[name(item)]
			if !ok || c.taken[j] || name(item) == "" {
				continue
			}
			c.taken[j] = true
			if at := c.found[i]; at < 0 || !c.items[at].HasCard && item.HasCard {
				c.found[i] = j
			}
		}
	}
}

// compare rates all identifiers against all items.
func (c *correlation) compare() {
	c.evidence = make([][]evidence, len(c.sent))
	for i := range c.sent {
		c.evidence[i] = make([]evidence, len(c.items))
	}
	for j := range c.items {
		l := labelOf(&c.items[j])
		for i, id := range c.sent {
			c.evidence[i][j] = l.rate(id)
		}
	}
}

// byElimination matches identifiers with items that name no other open identifier. Each match
// can make others unique.
func (c *correlation) byElimination() {
	claims := make([]int, len(c.items)) // number of open identifiers that an item names
	claim := func(i, n int) {
		for j, e := range c.evidence[i] {
			if e == names {
				claims[j] += n
			}
		}
	}
	for i, at := range c.found {
		if at < 0 {
			claim(i, 1)
		}
	}
	for changed := true; changed; {
		changed = false
		for i, at := range c.found {
			best := -1
			for j, e := range c.evidence[i] {
				if at < 0 && !c.taken[j] && e == names && claims[j] == 1 && (best < 0 || !c.items[best].HasCard && c.items[j].HasCard) {
					best = j
				}
			}
			if best >= 0 {
				c.match(i, best)
				claim(i, -1)
				changed = true
			}
		}
	}
}

// byPosition matches the rest by position if all open items are of one kind: items that name
// part of the identifier at their place, items with a card and no name, or items with
// neither. In a mix, such as cards and errors without names, the errors may come first or
// last and shift the others. It matches nothing if two identifiers fit each other's items
// better.
func (c *correlation) byPosition() {
	if len(c.sent) != len(c.items) {
		return
	}
	var open []int
	type kind struct{ named, card bool }
	kinds := map[kind]bool{}
	for i, at := range c.found {
		if at == i {
			continue
		}
		e := c.evidence[i][i]
		if at >= 0 || c.taken[i] || e == contradicts {
			return
		}
		open = append(open, i)
		kinds[kind{e > silent, e == silent && c.items[i].HasCard}] = true
	}
	for _, i := range open {
		for _, k := range open {
			if len(kinds) > 1 || c.evidence[i][k]+c.evidence[k][i] > c.evidence[i][i]+c.evidence[k][k] {
				return
			}
		}
	}
	for _, i := range open {
		c.match(i, i)
	}
}

// Evidence says how well an item fits an identifier, the best last.
type evidence uint8

const (
	contradicts evidence = iota
	differs              // another number or token, which may stand for the card
	silent               // no name to compare
	extends              // a name that begins with the identifier
	names                // the identifier, or its beginning, end or both
)

// A label is all that an item says about the card that it is for.
type label struct {
	item      *Item
	bin, echo name
}

func labelOf(item *Item) label { return label{item, nameOf(item.BIN), nameOf(item.Echo)} }

// rate compares the label with an identifier that was sent.
func (l *label) rate(id string) evidence {
	sent := nameOf(id)
	bin, echo := l.bin.rate(sent), l.echo.rate(sent)
	switch {
	case bin < silent, echo == contradicts, echo == differs && bin != names, l.item.isOutOfRange(id):
		return contradicts
	}
	return max(bin, echo)
}

// A name is an item's bin or pan_or_token. The form of an echo is not documented: it may be
// whole, shortened, masked, the last four digits, or a word for what was sent.
type name struct {
	head   string // before the first masked character; all of it, if nothing is masked
	tail   string // after the last masked character
	masked bool
	number bool // all visible characters are digits
}

func nameOf(s string) name {
	if s == "" || isDigits(s) {
		return name{head: s, number: true}
	}
	text, number := unmarked(s, "*•●#…·.xX")
	if !number {
		text, _ = unmarked(s, "*•●…")
	}
	head, rest, masked := strings.Cut(text, "*")
	return name{head: head, tail: rest[strings.LastIndex(rest, "*")+1:], masked: masked, number: number}
}

// unmarked writes each masked character as '*'. It reports whether all other characters are
// digits and separators, and then drops the separators.
func unmarked(s, marks string) (text string, number bool) {
	number = true
	text = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(marks, r):
			return '*'
		case r < '0' || r > '9':
			number = number && (r == ' ' || r == '-')
		}
		return r
	}, s)
	if number {
		text = strings.NewReplacer(" ", "", "-", "").Replace(text)
	}
	return text, number
}

// rate compares the name with an identifier that was sent.
func (n name) rate(id name) evidence {
	const lastFour = 4
	switch card := id.head; {
	case n.head+n.tail == "", n.number != id.number: // a token's card has a BIN, too
		return silent
	case len(n.head)+len(n.tail) <= len(card) && strings.HasPrefix(card, n.head) && strings.HasSuffix(card, n.tail):
		return names
	case strings.HasPrefix(n.head, card):
		return extends
	case n.masked:
		return contradicts
	case n.number && len(n.head) == lastFour && strings.HasSuffix(card, n.head):
		return names
	case isWord(n.head): // the kind of what was sent, such as "TOKEN"
		return silent
	}
	return differs
}

// isOutOfRange reports whether no number that begins with the identifier is in the item's BIN
// range.
func (i *Item) isOutOfRange(id string) bool {
	low, high := i.Low, i.High
	if !i.HasCard || !isDigits(id) || !isDigits(low) || !isDigits(high) || len(low) != len(high) || low > high {
		return false
	}
	n := min(len(id), len(low))
	return id[:n] < low[:n] || id[:n] > high[:n]
}

// isWord reports whether all characters are letters and spaces.
func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r != ' ' && !unicode.IsLetter(r) })
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// CanJoin reports whether an identifier can share a request with others. It cannot if one
// begins with the other, because the shortened name of the longer one could look like the
// shorter one.
func CanJoin[T any](id string, others []T, sent func(T) string) bool {
	return !slices.ContainsFunc(others, func(other T) bool {
		o := sent(other)
		return len(id) != len(o) && (strings.HasPrefix(id, o) || strings.HasPrefix(o, id))
	})
}

// Apart divides lookups into groups without identifiers that could be confused. Each level of
// nested identifiers needs one more group.
func Apart[T any](lookups []T, sent func(T) string) (groups [][]T) {
	if !slices.ContainsFunc(lookups, func(l T) bool { return len(sent(l)) != len(sent(lookups[0])) }) {
		return [][]T{lookups}
	}
	for _, l := range lookups {
		i := slices.IndexFunc(groups, func(group []T) bool { return CanJoin(sent(l), group, sent) })
		if i < 0 {
			i, groups = len(groups), append(groups, make([]T, 0, len(lookups)))
		}
		groups[i] = append(groups[i], l)
	}
	return groups
}
