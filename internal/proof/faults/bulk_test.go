package faults

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// probes is how often at most a batch is sent again while the service fails: with
// delays that double, until the bulk lookup gives up.
const probes = 30

// A bulk is a call of LookupAll.
type bulk struct {
	patience
	cards       []string
	concurrency int
	giveUpAfter time.Duration
	slow        bool // the loop
	leaves      int  // the loop after so many results; 0: stays
}

func drawBulk(c chance, _ int) workload {
	b := bulk{patience: drawPatience(c), cards: drawCards(c, 1+c.IntN(pick(c, 180, 180, 180, 180, 1500))), concurrency: 1 + c.IntN(4), giveUpAfter: pick(c, time.Second, time.Minute, 30*time.Minute)}
	b.slow = c.percent(20)
	if c.percent(10) {
		b.leaves = 1 + c.IntN(len(b.cards))
	}
	return b
}

// drawCards draws identifiers, some more than once.
func drawCards(c chance, n int) []string {
	if c.percent(30) {
		return cardsFrom(0, n)
	}
	cards, numbers := make([]string, n), 1+c.IntN(1000)
	for i := range cards {
		cards[i] = fmt.Sprintf("4%0*d", 7+c.IntN(9), c.IntN(numbers))
	}
	return cards
}

func (b bulk) play(w *world) { b.call(w, w.lookupClient(), "bulk lookup") }

// call returns the error that ended it, or that of the last card without a result.
func (b bulk) call(w *world, client *bins.Client, name string) error {
	if w.settings.attemptTimeout == 0 && b.deadline == 0 {
		b.deadline = 5 * time.Minute // or nothing bounds it
	}
	ctx, c, stop := w.call(name, b.patience, 0)
	defer stop()
	c.concurrency, c.beginnings = b.concurrency, probes
	cards := b.cards
	next := 0
	var ended, failed error
	options := bins.BulkOptions{Concurrency: b.concurrency, GiveUpAfter: b.giveUpAfter}
	if !c.guard(func() {
		for r, err := range client.LookupAll(ctx, slices.Values(cards), options) {
			switch {
			case ended != nil:
				w.violate(wrongAnswer, "%s: a result after the end", c)
			case err != nil:
				ended = err
				checkError[*bins.Error](c, err)
				continue
			case r.Index != next || r.Input.Reveal() != cards[r.Index]:
				w.violate(wrongAnswer, "%s: result %d in place of %d", c, r.Index, next)
			case r.Err == nil && !isAbout(&r.Result, cards[r.Index]):
				w.violate(wrongAnswer, "%s: %v for card %d", c, r.Result, r.Index)
			case errors.Is(r.Err, bins.ErrMissing):
				w.violate(wrongAnswer, "%s: card %d is missing", c, r.Index)
			case r.Err != nil:
				w.count("bulk result failed")
				checkError[*bins.Error](c, r.Err)
			default:
				w.count("bulk result")
			}
			failed = cmp.Or(r.Err, failed)
			if pause := w.chance(fmt.Sprint("pause after ", r.Index)); b.slow && pause.percent(3) {
				c.hold(pause.within(10 * time.Second))
			}
			if next++; next == b.leaves {
				c.left = true
				break
			}
		}
	}) {
		return errThrown
	}
	c.returned(ended, -1)
	if ended == nil && next != b.leaves && next != len(cards) {
		w.violate(wrongAnswer, "%s: %d results for %d cards", c, next, len(cards))
	}
	return cmp.Or(ended, failed)
}
