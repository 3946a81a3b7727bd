package bins

import (
	"slices"
	"strings"
)

// correlate finds, for each identifier that was sent, the index of its item, or
// -1 where the service left it out or it cannot be told. Order, repetition and
// form of the echo are not documented, so evidence decides: first items that
// name their identifier, then items that fit one identifier alone; last, if
// there is one for each and no earlier match speaks against it, their position.
func correlate(sent []string, items []Result) []int {
	c := correlation{sent: sent, items: items, found: make([]int, len(sent)), taken: make([]bool, len(items))}
	for i := range c.found {
		c.found[i] = -1
	}
	// An item that names the very card number may name its BIN too.
	c.byName((*Result).echo)
	c.byName(func(r *Result) string { return r.BIN })
	if slices.Contains(c.found, -1) && !c.isInOrder() {
		c.compare()
		c.byElimination()
		c.byPosition()
	}
	return c.found
}

type correlation struct {
	sent  []string
	items []Result
	found []int
	taken []bool
	fits  [][]fit // of identifier and item
}

func (c *correlation) match(i, j int) { c.found[i], c.taken[j] = j, true }

func (c *correlation) byName(name func(*Result) string) {
	named := make(map[string]int, len(c.items))
	const several = -1
	for j := range c.items {
		if c.taken[j] {
			continue
		}
		name := name(&c.items[j])
		if _, ok := named[name]; ok {
			j = several
		}
		named[name] = j
	}
	var unnamed []int
	for i, id := range c.sent {
		if _, ok := named[id]; !ok {
			unnamed = append(unnamed, i)
		}
	}
	for i, id := range c.sent {
		if j, ok := named[id]; ok && j != several && id != "" && c.found[i] < 0 && !c.isCutEcho(i, j, unnamed) {
			c.match(i, j)
		}
	}
}

// isCutEcho tells whether item j, which names identifier i, may be about another
// whose echo was cut: its range does not hold all of i, and it fits one that no
// item names.
func (c *correlation) isCutEcho(i, j int, unnamed []int) bool {
	if len(unnamed) == 0 {
		return false
	}
	item := newClue(&c.items[j])
	if item.fit(newSpanned(c.sent[i])) >= holds {
		return false
	}
	return slices.ContainsFunc(unnamed, func(other int) bool {
		return c.found[other] < 0 && item.fit(newSpanned(c.sent[other])) >= fits
	})
}

// isInOrder matches by position at once where each open identifier lies in the
// range of the item at its place: comparing all with all would come to the same.
func (c *correlation) isInOrder() bool {
	if len(c.sent) != len(c.items) {
		return false
	}
	for i, j := range c.found {
		if j >= 0 && j != i {
			return false
		}
		if item := newClue(&c.items[i]); j < 0 && item.fit(newSpanned(c.sent[i])) != holds {
			return false
		}
	}
	for i := range c.found {
		c.match(i, i)
	}
	return true
}

// compare rates every identifier against every item, for what names left open.
func (c *correlation) compare() {
	ids := make([]spanned, len(c.sent))
	for i, id := range c.sent {
		ids[i] = newSpanned(id)
	}
	c.fits = make([][]fit, len(c.sent))
	for i := range c.fits {
		c.fits[i] = make([]fit, len(c.items))
	}
	for j := range c.items {
		item := newClue(&c.items[j])
		for i, id := range ids {
			c.fits[i][j] = item.fit(id)
		}
	}
}

// byElimination matches identifiers with items that fit no other identifier,
// which can make another match plain.
func (c *correlation) byElimination() {
	claims := make([]int, len(c.items)) // open identifiers that an item fits
	for i := range c.sent {
		for j := range c.items {
			if c.found[i] < 0 && c.fits[i][j] >= fits {
				claims[j]++
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range c.sent {
			best := -1
			for j, f := range c.fits[i] {
				if !c.taken[j] && f >= fits && claims[j] == 1 && (best < 0 || f > c.fits[i][best]) {
					best = j
				}
			}
			if c.found[i] >= 0 || best < 0 {
				continue
			}
			c.match(i, best)
			changed = true
			for j, f := range c.fits[i] {
				if f >= fits {
					claims[j]--
				}
			}
		}
	}
}

func (c *correlation) byPosition() {
	if len(c.sent) != len(c.items) {
		return
	}
	for i, j := range c.found {
		if j >= 0 && j != i || j < 0 && c.fitsBetterSwapped(i) {
			return
		}
	}
	for i := range c.sent {
		if c.found[i] < 0 && c.fits[i][i] >= silent {
			c.match(i, i)
		}
	}
}

// fitsBetterSwapped tells whether identifier i and another open one would go
// better with each other's items, which speaks against their order.
func (c *correlation) fitsBetterSwapped(i int) bool {
	for k, j := range c.found {
		if j < 0 && c.fits[i][k]+c.fits[k][i] > c.fits[i][i]+c.fits[k][k] {
			return true
		}
	}
	return false
}

// A fit is how well an item goes with an identifier.
type fit int

const (
	contradicts fit = iota
	silent          // the item names nothing that could be compared
	fits            // one names a beginning of the other
	holds           // and the item's range holds all of the identifier
)

// A spanned identifier knows which numbers begin with it.
type spanned struct {
	id          string
	digits      bool
	first, last uint64
}

func newSpanned(id string) spanned {
	s := spanned{id: id, digits: isDigits(id)}
	if s.digits && len(id) <= rangeDigits {
		s.first, s.last = span(id)
	}
	return s
}

// A clue is what an item says of the identifier that it is about.
type clue struct {
	bin       string
	low, high uint64
	ranged    bool
}

func newClue(r *Result) clue {
	c := clue{bin: r.BIN}
	c.low, c.high, c.ranged = r.bounds()
	return c
}

func (c *clue) fit(id spanned) fit {
	held := false
	if c.ranged && id.digits && len(id.id) <= rangeDigits {
		if id.last < c.low || c.high < id.first {
			return contradicts
		}
		held = c.low <= id.first && id.last <= c.high
	}
	switch {
	case c.bin == "" || !id.digits:
		return silent
	case !strings.HasPrefix(id.id, c.bin) && !strings.HasPrefix(c.bin, id.id):
		return contradicts
	case held:
		return holds
	}
	return fits
}

// echo is the card number or token that the item says it is about, if any.
func (r *Result) echo() string {
	if r.Data == nil || r.Data.Card == nil {
		return ""
	}
	return r.Data.Card.PANOrToken.Reveal()
}
