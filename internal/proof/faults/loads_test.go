package faults

import (
	"context"
	"errors"
	"time"

	"github.com/carddata/carddata-go/bins"
)

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
