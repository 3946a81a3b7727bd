package probe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// lookups are the responses to lookups with the true token, in the plan's order, that
// say something: neither a refused token nor a service under load answers a question.
func (f facts) lookups(of func(*Fact) bool) (list []*Fact) {
	for _, id := range slices.Sorted(maps.Keys(f)) {
		fact := f[id]
		if strings.HasPrefix(id, "lookup-") && fact.Asked != nil && fact.said() && !fact.refused() && of(fact) {
			list = append(list, fact)
		}
	}
	return list
}

// said tells whether a response is one to the question.
func (f *Fact) said() bool {
	return f != nil && !f.Cut && !slices.Contains([]int{0, 408, 429, 502, 503, 504}, f.Status)
}

// refused tells whether the credential was.
func (f *Fact) refused() bool { return f.Status == 401 || f.Status == 403 }

func single(card string) func(*Fact) bool {
	return func(f *Fact) bool { return len(f.Asked) == 1 && f.Asked[0] == card }
}

// known are the published cards that the service knew when they were asked for
// alone.
func (f facts) known() []string {
	return slices.DeleteFunc(slices.Clone(knownCards), func(card string) bool {
		return !slices.ContainsFunc(f.lookups(single(card)), func(f *Fact) bool { return len(f.Items) > 0 && f.Items[0].Data })
	})
}

// owners finds the card of each item of a response: by its name, and where items
// carry no names, by what the service says of the card when it is asked for alone.
func (f facts) owners(fact *Fact) (owners []int) {
	alone := map[string]string{}
	for _, card := range knownCards {
		for _, single := range f.lookups(single(card)) {
			if len(single.Items) > 0 && single.Items[0].Digest != "" {
				alone[single.Items[0].Digest] = card
			}
		}
	}
	for _, item := range fact.Items {
		owner := item.Echo
		if card, ok := alone[item.Digest]; owner < 0 && item.Digits == 0 && ok {
			owner = slices.Index(fact.Asked, card)
		}
		owners = append(owners, owner)
	}
	return owners
}

func lookupPoints(seen facts) []Point {
	return []Point{
		orderPoint(seen), itemsPoint(seen), duplicatesPoint(seen), echoPoint(seen), unknownPoint(seen), nullsPoint(seen),
		enhancedPoint(seen), boundsPoint(seen), refusalPoint(seen["lookup-broken"], false), errorPoint(seen),
	}
}

// several are the successful lookups of different known cards.
func (f facts) several() []*Fact {
	return f.lookups(func(fact *Fact) bool {
		distinct := slices.Compact(slices.Sorted(slices.Values(fact.Asked)))
		return len(distinct) > 1 && len(distinct) == len(fact.Asked) && fact.Items != nil
	})
}

// orderPoint leaves out cards with items apart: any of these may be the one too many.
func orderPoint(seen facts) Point {
	t, several := tally{}, false
	for _, fact := range seen.several() {
		items := map[int]int{}
		owners := slices.Compact(seen.owners(fact))
		for _, i := range owners {
			items[i]++
			several = several || i >= 0 && items[i] > 1
		}
		owners = slices.DeleteFunc(owners, func(i int) bool { return i < 0 || items[i] > 1 })
		switch {
		case len(owners) < 2: // too few to tell
		case slices.IsSorted(owners):
			t["kept"]++
		default:
			t["changed"]++
		}
	}
	p := t.point("kept", "changed")
	p.Bound += map[bool]string{true: "; cards that had several items are left out"}[several]
	return p
}

func itemsPoint(seen facts) Point {
	t := tally{}
	for _, fact := range seen.several() {
		t[[]string{"fewer", "one per card", "more"}[1+cmp.Compare(len(fact.Items), len(fact.Asked))]]++
	}
	return t.point("one per card", "fewer", "more")
}

// duplicatesPoint looks at the card with the fewest items: an item that the service
// adds or leaves out besides belongs to one card only.
func duplicatesPoint(seen facts) Point {
	t := tally{}
	for _, fact := range seen.lookups(func(f *Fact) bool { return len(f.Asked) == 8 && f.Asked[0] == f.Asked[3] }) {
		counts := map[string]int{}
		for _, owner := range seen.owners(fact) {
			if owner >= 0 {
				counts[fact.Asked[owner]]++
			}
		}
		switch low, high := min(counts[fact.Asked[0]], counts[fact.Asked[1]]), max(counts[fact.Asked[0]], counts[fact.Asked[1]]); {
		case high >= 3:
			t["kept"]++
		case low <= 1 && high >= 1:
			t["merged"]++
		}
	}
	return t.point("kept", "merged")
}

// echoPoint needs cards of several lengths: a short one is echoed whole by a service
// that cuts.
func echoPoint(seen facts) Point {
	observations, cut, whole, absent := 0, 0, 0, 0
	for _, fact := range seen.lookups(func(f *Fact) bool {
		return len(f.Asked) == 1 && len(f.Items) > 0 && !slices.Contains(unknownCards, f.Asked[0])
	}) {
		switch item := fact.Items[0]; {
		case item.Digits == 0 && !item.Data:
			continue
		case item.Digits == 0:
			absent++
		case item.Echo < 0, cut > 0 && item.Digits < len(fact.Asked[0]) && item.Digits != cut:
			return Point{State: NotAnswerable} // something else than what was sent
		case item.Digits < len(fact.Asked[0]):
			cut = item.Digits
		default:
			whole = max(whole, item.Digits)
		}
		observations++
	}
	switch {
	case absent > 0 && absent == observations:
		return answer(observations, "absent")
	case absent == 0 && cut >= max(1, whole):
		return answer(observations, fmt.Sprintf("prefix %d", cut))
	case absent == 0 && cut == 0 && whole > 8:
		return answer(observations, "whole")
	}
	return Point{State: NotAnswerable} // nothing long was known: it may be cut beyond
}

func unknownPoint(seen facts) Point {
	t := tally{}
	for _, card := range unknownCards {
		for _, fact := range seen.lookups(single(card)) {
			switch {
			case fact.Status/100 != 2:
				t[fmt.Sprintf("status %d", fact.Status)]++
			case fact.Errors != nil || len(fact.Items) == 0 && len(seen.known()) == 0: // no lookup of one card has an item
			case len(fact.Items) == 0:
				t["left out"]++
			case fact.Items[0].Data:
			case fact.Items[0].Error:
				t["error item"]++
			default:
				t["null data"]++
			}
		}
	}
	return t.point()
}

func nullsPoint(seen facts) Point {
	n, names := 0, []string{}
	for _, fact := range seen.lookups(func(*Fact) bool { return true }) {
		for _, item := range fact.Items {
			if item.Data {
				n++
				names = append(names, item.Nulls...)
			}
		}
	}
	p := answer(n, orNone(unique(names))...)
	if p.State == Observed {
		p.Bound = fmt.Sprintf("in %d items: with 95 %% confidence, another member is null in at most %.1f %% of items", n, share(n))
	}
	return p
}

// enhancedPoint compares the members of a card, leaving out those that differ
// between two equal requests.
func enhancedPoint(seen facts) Point {
	n, differ, like := 0, []string{}, tally{}
	for _, card := range seen.known() {
		list := seen.lookups(func(f *Fact) bool { return single(card)(f) && len(f.Items) > 0 && f.Items[0].Members != nil })
		if len(list) != 6 { // asked as nothing, true, false, and once more
			continue
		}
		n++
		members := func(i int) map[string]string { return list[i].Items[0].Members }
		unstable := map[string]bool{}
		for i := range 3 {
			for _, name := range differences(members(i), members(i+3)) {
				unstable[name] = true
			}
		}
		diff := func(a, b int) []string {
			return slices.DeleteFunc(differences(members(a), members(b)), func(name string) bool { return unstable[name] })
		}
		on := diff(1, 2)
		differ = append(differ, on...)
		switch {
		case len(on) == 0 && len(diff(0, 1)) == 0:
		case len(diff(0, 1)) == 0:
			like["default like true"]++
		case len(diff(0, 2)) == 0:
			like["like false"]++
		default:
			like["like neither"]++
			differ = append(differ, diff(0, 1)...)
		}
	}
	switch {
	case n == 0 || len(like) > 1:
		return Point{State: NotAnswerable}
	case len(differ) == 0:
		return answer(n, "no difference")
	}
	return answer(n, append(outermost(differ), like.point().Answer...)...)
}

// differences names the members that one of two items has otherwise, or alone.
func differences(a, b map[string]string) (names []string) {
	both := maps.Clone(a)
	maps.Copy(both, b)
	for name := range both {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	return names
}

// outermost leaves out what is named twice, and what is within an object that is named.
func outermost(names []string) (list []string) {
	slices.Sort(names)
	for _, name := range names {
		if !slices.ContainsFunc(list, func(object string) bool { return strings.HasPrefix(name+".", object+".") }) {
			list = append(list, name)
		}
	}
	return list
}

func boundsPoint(seen facts) Point {
	none, many := seen["lookup-none"], seen["lookup-many"]
	if !none.said() || !many.said() || none.refused() || many.refused() {
		return Point{State: NotAnswerable}
	}
	return answer(1, fmt.Sprintf("0: %d, 51: %d", none.Status, many.Status))
}

func errorPoint(seen facts) Point {
	order := []string{"documented object", "message", "code", "other", "empty"}
	t := tally{}
	var forms []string
	list := seen.lookups(func(*Fact) bool { return true })
	if broken := seen["lookup-broken"]; broken.said() {
		list = append(list, broken)
	}
	for _, fact := range list {
		if fact.Status/100 != 2 {
			t[strings.Join(fact.Errors, ", ")]++
			forms = append(forms, fact.Errors...)
		}
	}
	p := t.point()
	slices.SortFunc(forms, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	p.Answer = slices.Compact(forms)
	return p
}
