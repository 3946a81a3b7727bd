package faults

import (
	"slices"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// A bulk is a call of LookupAll.
type bulk struct {
	patience
	cards       int
	concurrency int
	leaves      int // the loop after so many results; 0: stays
}

func drawBulk(c chance, _ int) workload {
	b := bulk{patience: drawPatience(c), cards: 1 + c.IntN(180), concurrency: 1 + c.IntN(4)}
	if c.percent(10) {
		b.leaves = 1 + c.IntN(b.cards)
	}
	return b
}

func (b bulk) play(w *world) {
	client, err := bins.NewClient(baseURL, w.token(), w.options()...)
	if !w.must(err) {
		return
	}
	if w.settings.attemptTimeout == 0 && b.deadline == 0 {
		b.deadline = 5 * time.Minute // or nothing bounds it
	}
	ctx, c, stop := w.call("bulk lookup", b.patience, 0)
	defer stop()
	c.concurrency = b.concurrency
	cards := cardsFrom(0, b.cards)
	next := 0
	var ended error
	for r, err := range client.LookupAll(ctx, slices.Values(cards), bins.BulkOptions{Concurrency: b.concurrency}) {
		switch {
		case ended != nil:
			w.violate(wrongAnswer, "%s: a result after the end", c)
		case r.Index < 0:
			ended = err
			checkLookupError(c, err)
			continue
		case r.Index != next || r.Input.Reveal() != cards[next]:
			w.violate(wrongAnswer, "%s: result %d in place of %d", c, r.Index, next)
		case err == nil && !isAbout(&r.Result, cards[next]):
			w.violate(wrongAnswer, "%s: %v for card %d", c, r.Result, next)
		case err != nil:
			w.count("bulk result failed")
			checkLookupError(c, err)
		default:
			w.count("bulk result")
		}
		if next++; next == b.leaves {
			break
		}
	}
	c.returned(ended, -1)
	if ended == nil && next != b.leaves && next != len(cards) {
		w.violate(wrongAnswer, "%s: %d results for %d cards", c, next, len(cards))
	}
}
