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
	card int
}

func drawLoads(c chance, callers int) workload {
	list := make(loads, 3*callers)
	for i := range list {
		list[i] = load{drawPatience(c), c.IntN(2 * callers)}
		if c.percent(70) {
			list[i].start = c.within(5 * time.Millisecond)
		}
	}
	return list
}

func (l loads) play(w *world) {
	client, err := bins.NewClient(baseURL, w.token(), w.options()...)
	if !w.must(err) {
		return
	}
	loader, err := bins.NewLoader(client, bins.LoaderOptions{})
	if !w.must(err) {
		return
	}
	together(l, func(i int, one load) {
		const window = 2 * time.Millisecond
		ctx, c, stop := w.call(name("load", i), one.patience, 30*time.Second+window)
		defer stop()
		card := cardsFrom(one.card, 1)[0]
		result, err := loader.Load(ctx, card)
		c.returned(err, -1)
		switch {
		case err == nil && !isAbout(&result, card):
			w.violate(wrongAnswer, "%s: %v for %s", c, result, card)
		case err == nil:
			w.count("load answered")
		default:
			w.count("load failed")
			checkLookupError(c, err)
			if errors.Is(err, context.Canceled) && ctx.Err() == nil {
				w.violate(wrongAnswer, "%s: canceled by another caller", c)
			}
		}
	})
}
