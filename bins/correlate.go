package bins

import (
	"slices"
	"strings"
)

// correlate finds, for each identifier that was sent, the index of its item, or
// -1 where the service left it out or it cannot be told. None of the identifiers
// may begin with another one: see apart.
//
// Order, repetition and form of the echo are not documented, so evidence decides.
// First, an item that names an identifier exactly belongs to it, and to nobody
// else. Then an item whose name is the beginning of one open identifier alone
// belongs to that. Last comes the position, if there is an item for each
// identifier and nothing speaks against the order.
func correlate(sent []string, items []Result) []int {
	c := correlation{sent: sent, items: items, found: slices.Repeat([]int{-1}, len(sent)), taken: make([]bool, len(items))}
	if !c.inOrder() {
		c.byEvidence()
	}
	return c.found
}

type correlation struct {
	sent     []string
	items    []Result
	found    []int
	taken    []bool
	evidence [][]evidence // of identifier and item
}

func (c *correlation) match(i, j int) { c.found[i], c.taken[j] = j, true }

// inOrder matches the items if each names the identifier at its place, whole or shortened
// and with a range that holds it, as nearly all responses do. The evidence would say the
// same, in ten times the time.
func (c *correlation) inOrder() bool {
	if len(c.items) != len(c.sent) {
		return false
	}
	for i, id := range c.sent {
		item := &c.items[i]
		switch echo := item.echo(); {
		case echo == id, echo == "" && item.BIN == id:
		case echo != "" || item.BIN == "" || !strings.HasPrefix(id, item.BIN):
			return false
		default:
			if bounds := item.bounds(); bounds.ok && !bounds.holds(spanOf(id)) {
				return false
			}
		}
	}
	for i := range c.found {
		c.found[i] = i
	}
	return true
}

func (c *correlation) byEvidence() {
	c.byName()
	if slices.Contains(c.found, -1) && slices.Contains(c.taken, false) {
		c.compare()
		c.byElimination()
		c.byPosition()
	}
}

// byName matches the items that name an identifier exactly. Several may name the
// same: the first that holds a card is its item, and no other identifier gets one
// of them. An item that names the very card number or token may name a BIN too,
// and then belongs to the former.
func (c *correlation) byName() {
	ids := make(map[string]int, len(c.sent))
	for i, id := range c.sent {
		ids[id] = i
	}
	for _, name := range [...]func(*Result) string{(*Result).echo, func(r *Result) string { return r.BIN }} {
		for j := range c.items {
			item := &c.items[j]
			i, ok := ids[name(item)]
			if !ok || c.taken[j] || name(item) == "" {
				continue
			}
			c.taken[j] = true
			if at := c.found[i]; at < 0 || !c.items[at].hasCard() && item.hasCard() {
				c.found[i] = j
			}
		}
	}
}

// Evidence is what an item says about whether it is an identifier's.
type evidence uint8

const (
	contradicts evidence = iota
	silent               // it names nothing that could be compared
	extends              // it names something that begins with the identifier
	begins               // it names a beginning of the identifier
	holds                // and its range holds all of the identifier
)

// compare rates every identifier against every item, for what names left open.
func (c *correlation) compare() {
	c.evidence = make([][]evidence, len(c.sent))
	numbers, numeric := make([]span, len(c.sent)), make([]bool, len(c.sent))
	for i, id := range c.sent {
		c.evidence[i] = make([]evidence, len(c.items))
		numbers[i], numeric[i] = spanOf(id), isDigits(id)
	}
	for j := range c.items {
		bin, bounds := c.items[j].BIN, c.items[j].bounds()
		isBIN := isDigits(bin)
		for i, id := range c.sent {
			e := &c.evidence[i][j]
			switch {
			case bounds.isApart(numbers[i]): // it contradicts
			case bin == "":
				*e = silent
			case strings.HasPrefix(id, bin) && bounds.holds(numbers[i]):
				*e = holds
			case strings.HasPrefix(id, bin):
				*e = begins
			case strings.HasPrefix(bin, id):
				*e = extends
			case isBIN && !numeric[i]:
				*e = silent // a token's card has a BIN, too
			}
		}
	}
}

// byElimination matches identifiers with items that name a beginning of no other
// open identifier, which can make another match plain.
func (c *correlation) byElimination() {
	claims := make([]int, len(c.items)) // open identifiers of which an item names a beginning
	claim := func(i, n int) {
		for j, e := range c.evidence[i] {
			if e >= begins {
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
				if at < 0 && !c.taken[j] && e >= begins && claims[j] == 1 && (best < 0 || e > c.evidence[i][best]) {
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

// byPosition matches what is open if all of it is of one kind: items that name
// something of the identifier at their place, items with a card that name nothing,
// or items without either. In a mix, such as cards and errors that name nothing,
// the errors may come first or last and shift the rest. No two may go better with
// each other's items.
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
		kinds[kind{e > silent, e == silent && c.items[i].hasCard()}] = true
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

// echo is the card number or token that the item says it is about, if any.
func (r *Result) echo() string {
	if !r.hasCard() {
		return ""
	}
	return r.Data.Card.PANOrToken.Reveal()
}

func (r *Result) hasCard() bool { return r.Data != nil && r.Data.Card != nil }

// canJoin tells whether an identifier may be in one request with others. It may not if one
// begins with the other, because in the response the shortened name of the longer could be
// taken for that of the shorter.
func canJoin(id string, others []*lookup) bool {
	return !slices.ContainsFunc(others, func(other *lookup) bool {
		return len(id) != len(other.sent) && (strings.HasPrefix(id, other.sent) || strings.HasPrefix(other.sent, id))
	})
}

// apart puts the lookups into groups in which no two identifiers can be confused. There
// is one group more for each level that identifiers are nested.
func apart(lookups []*lookup) (groups [][]*lookup) {
	if !slices.ContainsFunc(lookups, func(l *lookup) bool { return len(l.sent) != len(lookups[0].sent) }) {
		return [][]*lookup{lookups}
	}
	for _, l := range lookups {
		i := slices.IndexFunc(groups, func(group []*lookup) bool { return canJoin(l.sent, group) })
		if i < 0 {
			i, groups = len(groups), append(groups, make([]*lookup, 0, len(lookups)))
		}
		groups[i] = append(groups[i], l)
	}
	return groups
}
