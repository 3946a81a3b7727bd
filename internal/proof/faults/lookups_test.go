package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// lookups are calls of Lookup by several callers.
type lookups []lookupCaller

type lookupCaller struct {
	patience
	first, count int
}

func drawLookups(c chance, callers int) workload {
	list := make(lookups, callers)
	for i := range list {
		list[i] = lookupCaller{drawPatience(c), i * bins.MaxCards, pick(c, 1, 2, 3, 50)}
	}
	return list
}

// cardsFrom makes identifiers that no other caller asks for.
func cardsFrom(first, count int) []string {
	cards := make([]string, count)
	for i := range cards {
		cards[i] = fmt.Sprintf("4%07d", first+i)
	}
	return cards
}

func (l lookups) play(w *world) {
	client := w.lookupClient()
	together(l, func(i int, caller lookupCaller) {
		w.lookup(client, name("lookup", i), caller.patience, cardsFrom(caller.first, caller.count))
	})
}

func (w *world) lookup(client *bins.Client, name string, p patience, cards []string) error {
	ctx, c, stop := w.call(name, p, 30*time.Second)
	defer stop()
	var resp *bins.LookupResponse
	var err error
	if !c.guard(func() { resp, err = client.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(cards...)}) }) {
		return errThrown
	}
	c.returned(err, attemptsOf(err))
	if err != nil {
		w.count("lookup failed")
		checkError[*bins.Error](c, err)
		c.gaveUp(err, false)
		return err
	}
	w.count("lookup answered")
	checkItems(c, cards, resp.Cards)
	return nil
}

// checkItems compares an answer with what was asked, in any order.
func checkItems(c *call, cards []string, items []bins.Result) {
	asked := slices.Clone(cards)
	for i := range items {
		at := slices.Index(asked, items[i].BIN)
		if at < 0 || !isAbout(&items[i], items[i].BIN) {
			c.w.violate(wrongAnswer, "%s: an item for %v, which was not asked", c, items[i])
			return
		}
		asked = slices.Delete(asked, at, at+1)
	}
	if len(asked) > 0 {
		c.w.violate(wrongAnswer, "%s: no item for %d of %d cards", c, len(asked), len(cards))
	}
}

// isAbout tells whether a result is the one that the service has for a card.
func isAbout(r *bins.Result, card string) bool {
	return saying(r) == brandOf(card)
}

// saying is what a result says, in short.
func saying(r *bins.Result) string {
	if found, err := r.Card(); err == nil {
		return found.CardBrand
	}
	return r.Error
}

// brandOf is what tells the items of two cards apart. Cards have the same item if
// they have their first eight digits in common.
func brandOf(card string) string { return "brand of " + firstDigits(card+"00000000", 8) }

func firstDigits(card string, n int) string { return card[:min(n, len(card))] }

// loads are calls of one Loader by several callers, some for the same card.
type loads []load

type load struct {
	patience
	card string
}

func drawLoads(c chance, callers int) workload {
	list := make(loads, 3*callers)
	cards := cardsFrom(0, 2*callers)
	if c.percent(40) {
		cards = nestedCards(c, 2*callers)
	}
	for i := range list {
		list[i] = load{drawPatience(c), pick(c, cards...)}
		if c.percent(70) {
			list[i].start = c.within(5 * time.Millisecond)
		}
	}
	return list
}

func (l loads) play(w *world) {
	loader := w.loader()
	together(l, func(i int, one load) { w.load(loader, name("load", i), one.patience, one.card) })
}

func (w *world) loader() *bins.Loader {
	return made(bins.NewLoader(w.lookupClient(), bins.LoaderOptions{Cache: w.cache()}))
}

func (w *world) load(loader *bins.Loader, name string, p patience, card string) error {
	const window = 2 * time.Millisecond
	ctx, c, stop := w.call(name, p, 30*time.Second+window)
	defer stop()
	c.shared = true
	var result bins.Result
	var err error
	if !c.guard(func() { result, err = loader.Load(ctx, card) }) {
		return errThrown
	}
	c.returned(err, -1)
	switch {
	case err == nil && !isAbout(&result, card):
		w.violate(wrongAnswer, "%s: %v for %s", c, result, card)
	case err == nil:
		w.count("load answered")
		c.answered(card)
	case errors.Is(err, bins.ErrMissing):
		c.missing(card)
	default:
		w.count("load failed")
		checkError[*bins.Error](c, err)
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			w.violate(wrongAnswer, "%s: canceled by another caller", c)
		}
	}
	return err
}
