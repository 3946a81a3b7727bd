package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
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
	client, err := bins.NewClient(baseURL, w.token(), w.options()...)
	if !w.must(err) {
		return
	}
	together(l, func(i int, caller lookupCaller) {
		ctx, c, stop := w.call(name("lookup", i), caller.patience, 30*time.Second)
		defer stop()
		cards := cardsFrom(caller.first, caller.count)
		var resp *bins.LookupResponse
		var err error
		if !c.guard(func() { resp, err = client.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(cards...)}) }) {
			return
		}
		c.returned(err, attemptsOfLookup(err))
		if err != nil {
			w.count("lookup failed")
			checkLookupError(c, err)
			c.gaveUp(err, w.repeatableRead)
			return
		}
		w.count("lookup answered")
		for i := range resp.Cards {
			w.record("%s: %s", c, saying(&resp.Cards[i]))
		}
		checkItems(c, cards, resp.Cards)
	})
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

func attemptsOfLookup(err error) int {
	if e, ok := errors.AsType[*bins.Error](err); ok {
		return e.Attempts
	}
	return -1
}

func checkLookupError(c *call, err error) {
	if e, ok := errors.AsType[*bins.Error](err); !ok || !hasCondition(e) && !c.isThrown(err) {
		c.w.violate(untyped, "%s: %T: %v", c, err, err)
	}
}

// conditions are those that all three packages have.
var conditions = []error{
	bins.ErrInvalidArgument, bins.ErrLocalLimit, bins.ErrCredential, bins.ErrNoResponse, bins.ErrTimeout, bins.ErrBadRequest,
	bins.ErrUnauthorized, bins.ErrForbidden, bins.ErrNotFound, bins.ErrConflict, bins.ErrTooLarge, bins.ErrRateLimited,
	bins.ErrServer, bins.ErrRedirect, bins.ErrBadResponse, bins.ErrResponseTooLarge, context.Canceled, context.DeadlineExceeded,
}

// conditionsOf names the conditions of an error. Its text may hold what a
// connection broke of, which net/http learns from two sides.
func conditionsOf(err error) string {
	var names []string
	own := []error{bins.ErrMissing, bins.ErrSuspended, refunds.ErrNotSent, refunds.ErrRejected, refunds.ErrOutcomeUnknown, refunds.ErrSuspended}
	for _, condition := range slices.Concat(conditions, downloadConditions, own) {
		if errors.Is(err, condition) {
			names = append(names, condition.Error())
		}
	}
	return cmp.Or(strings.Join(names, ", "), fmt.Sprint(err))
}

func hasCondition(err error) bool {
	return slices.ContainsFunc(conditions, func(condition error) bool { return errors.Is(err, condition) })
}
