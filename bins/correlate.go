package bins

import (
	"slices"
	"strings"
)

// correlate finds the index of each identifier's item, or -1 if the service left it out or
// the item is ambiguous. No identifier may begin with another one: see apart.
//
// Order, repetition and form of the echo are not documented, so evidence decides. First, an
// item that names an identifier exactly belongs only to that identifier. Then an item that
// fits only one open identifier belongs to it. The position decides last, if there is one
// item for each identifier and no name contradicts the order.
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

// inOrder matches the items if each names the identifier at its place: whole, masked, or
// shortened with a range that holds it. Nearly all responses do. Comparing the evidence gives
// the same result in ten times the time.
func (c *correlation) inOrder() bool {
	if len(c.items) != len(c.sent) {
		return false
	}
	for i, id := range c.sent {
		item := &c.items[i]
		switch echo := item.echo(); {
		case echo == id, echo == "" && item.BIN == id:
			continue
		case echo != "" && !c.isKind(echo) && !nameOf(echo).isFor(id), item.BIN == "" && echo == "", !strings.HasPrefix(id, item.BIN):
			return false
		}
		if bounds := item.bounds(); bounds.ok && !bounds.holds(spanOf(id)) {
			return false
		}
	}
	for i := range c.found {
		c.found[i] = i
	}
	return true
}

// isKind reports whether an echo says only what was sent, such as "PAN" or "TOKEN".
func (c *correlation) isKind(echo string) bool {
	return isWord(echo) && !slices.ContainsFunc(c.sent, func(id string) bool {
		return strings.HasPrefix(id, echo) || strings.HasPrefix(echo, id)
	})
}

func (c *correlation) byEvidence() {
	c.byName()
	if slices.Contains(c.found, -1) && slices.Contains(c.taken, false) {
		c.compare()
		c.byElimination()
		c.byPosition()
	}
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

// Evidence says how well an item fits an identifier, the best last.
type evidence uint8

const (
	contradicts evidence = iota
	differs              // another name, perhaps of another kind
	otherKind            // a number for a token, or a token for a number
	silent               // no name to compare
	extends              // a name that begins with the identifier
	ends                 // the end of the identifier
	begins               // the beginning of the identifier
	names                // both ends, or the whole
	holds                // both ends, and a range that holds the identifier
)

// compare rates all open identifiers against all open items.
func (c *correlation) compare() {
	c.evidence = make([][]evidence, len(c.sent))
	ids, numbers := make([]name, len(c.sent)), make([]span, len(c.sent))
	for i, id := range c.sent {
		c.evidence[i] = make([]evidence, len(c.items))
		ids[i], numbers[i] = nameOf(id), spanOf(id)
	}
	for j := range c.items {
		bin, echo, bounds := nameOf(c.items[j].BIN), nameOf(c.items[j].echo()), c.items[j].bounds()
		for i := range ids {
			c.evidence[i][j] = weigh(bin.rate(ids[i]), echo.rate(ids[i]), bin.number)
			if e := &c.evidence[i][j]; bounds.isApart(numbers[i]) {
				*e = contradicts
			} else if *e >= begins && bounds.holds(numbers[i]) {
				*e = holds
			}
		}
	}
}

// weigh combines the evidence of an item's bin and pan_or_token.
func weigh(bin, echo evidence, number bool) evidence {
	switch {
	case bin == otherKind && number: // a token's card has a BIN, too
		bin = silent
	case bin < silent:
		return contradicts
	}
	switch echo {
	case contradicts:
		return contradicts
	case differs: // a number or token that stands for the card, if the BIN says so
		if bin < ends {
			return contradicts
		}
		return bin
	case otherKind: // a token for a card number, or a card number for a token
		return bin
	}
	return max(bin, echo)
}

// byElimination matches identifiers with items that name no other open identifier. Each match
// can make others unique.
func (c *correlation) byElimination() {
	claims := make([]int, len(c.items)) // number of open identifiers that an item names
	claim := func(i, n int) {
		for j, e := range c.evidence[i] {
			if e >= ends {
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
				if at < 0 && !c.taken[j] && e >= ends && claims[j] == 1 && (best < 0 || e > c.evidence[i][best]) {
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

// echo is the card number or token that the item names, if any.
func (r *Result) echo() string {
	if !r.hasCard() {
		return ""
	}
	return r.Data.Card.PANOrToken.Reveal()
}

func (r *Result) hasCard() bool { return r.Data != nil && r.Data.Card != nil }

// canJoin reports whether an identifier can share a request with others. It cannot if one
// begins with the other, because the shortened name of the longer one could look like the
// shorter one.
func canJoin(id string, others []*lookup) bool {
	return !slices.ContainsFunc(others, func(other *lookup) bool {
		return len(id) != len(other.sent) && (strings.HasPrefix(id, other.sent) || strings.HasPrefix(other.sent, id))
	})
}

// apart divides the lookups into groups without identifiers that could be confused. Each
// level of nested identifiers needs one more group.
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
