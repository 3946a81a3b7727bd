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

// Find finds the index of each identifier's item, or -1 if the response has none that is clearly
// for it. No identifier may begin with another one: see Apart.
//
// Order, repetition and form of the names are not documented. So an item belongs to the identifier
// that it names; else to the one that begins with its name, if there is no other such item or
// identifier; else to the one at its position, if there are as many items as identifiers and no
// name contradicts the order.
func Find[T any](sent []string, answered []T, item func(*T) Item) []int {
	c := correlation{sent: sent, found: slices.Repeat([]int{-1}, len(sent)), taken: make([]bool, len(answered))}
	for i := range answered {
		c.items = append(c.items, item(&answered[i]))
	}
	c.byName(func(i *Item) string { return i.Echo }) // it is of one card, and a BIN of many
	c.byName(func(i *Item) string { return i.BIN })
	c.byPrefix()
	c.byPosition()
	return c.found
}

type correlation struct {
	sent  []string
	items []Item
	found []int
	taken []bool
}

func (c *correlation) match(i, j int) { c.found[i], c.taken[j] = j, true }

// byName matches the items that name an identifier exactly. If several name the same one, the
// first with a card is its item, and no other identifier gets the rest.
func (c *correlation) byName(name func(*Item) string) {
	for j := range c.items {
		i := slices.Index(c.sent, name(&c.items[j]))
		if i < 0 || c.taken[j] {
			continue
		}
		c.taken[j] = true
		if at := c.found[i]; at < 0 || !c.items[at].HasCard && c.items[j].HasCard {
			c.found[i] = j
		}
	}
}

// byPrefix matches an open identifier with the only item whose name it begins with, if no other
// open identifier begins with it.
func (c *correlation) byPrefix() {
	type pair struct{ i, j int }
	var pairs []pair
	names, owners := make([]int, len(c.sent)), make([]int, len(c.items))
	for i, at := range c.found {
		for j, taken := range c.taken {
			if at < 0 && !taken && c.items[j].begins(c.sent[i]) {
				pairs = append(pairs, pair{i, j})
				names[i]++
				owners[j]++
			}
		}
	}
	for _, p := range pairs {
		if names[p.i] == 1 && owners[p.j] == 1 {
			c.match(p.i, p.j)
		}
	}
}

// byPosition matches the open identifiers with the items at their positions, if nothing speaks
// against the order.
func (c *correlation) byPosition() {
	if len(c.sent) != len(c.items) {
		return
	}
	for i, at := range c.found {
		if at != i && (at >= 0 || c.taken[i] || c.items[i].contradicts(c.sent[i])) {
			return
		}
	}
	for i := range c.found {
		c.match(i, i)
	}
}

// begins reports whether an identifier begins with a name of the item.
func (i *Item) begins(id string) bool {
	return i.BIN != "" && strings.HasPrefix(id, i.BIN) || i.Echo != "" && strings.HasPrefix(id, i.Echo)
}

// contradicts reports whether a digit of a name differs from the digit at the same place of an
// identifier. The digits that all numbers of a range begin with are a name, too. A token may be
// named by the BIN of its card, and a card number by a token: they are not compared.
func (i *Item) contradicts(id string) bool {
	common := 0
	for common < min(len(i.Low), len(i.High)) && i.Low[common] == i.High[common] {
		common++
	}
	for _, name := range [...]string{i.BIN, i.Echo, i.Low[:common]} {
		for at := range min(len(name), len(id)) {
			if isDigit(name[at]) && isDigit(id[at]) && name[at] != id[at] && isNumber(name) == isNumber(id) {
				return true
			}
		}
	}
	return false
}

// isNumber reports whether a name is that of a card number, perhaps masked.
func isNumber(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsLetter(r) && r != 'x' && r != 'X' })
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

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
