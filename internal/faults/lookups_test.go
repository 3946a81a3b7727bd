package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
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
	client, err := bins.NewClient(baseURL, w.token(), w.options()...)
	if !w.must(err) {
		return
	}
	together(l, func(i int, caller lookupCaller) {
		ctx, c, stop := w.call(name("lookup", i), caller.patience, 30*time.Second)
		defer stop()
		cards := cardsFrom(caller.first, caller.count)
		resp, err := client.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(cards...)})
		c.returned(err, attemptsOfLookup(err))
		if err != nil {
			w.count("lookup failed")
			checkLookupError(c, err)
			c.gaveUp(err, w.repeatableRead)
			return
		}
		w.count("lookup answered")
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
	found, err := r.Card()
	return err == nil && found.CardBrand == "brand of "+card
}

// answerLookup is the service's answer to a lookup.
func answerLookup(body []byte, shuffled bool) answer {
	type card struct {
		Brand string `json:"card_brand"`
	}
	type item struct {
		BIN  string          `json:"bin"`
		Data map[string]card `json:"data"`
	}
	var request struct{ Cards []struct{ Card string } }
	if json.Unmarshal(body, &request) != nil || len(request.Cards) == 0 || len(request.Cards) > bins.MaxCards {
		return answer{status: http.StatusBadRequest}
	}
	items := make([]item, len(request.Cards))
	for i, asked := range request.Cards {
		items[i] = item{asked.Card, map[string]card{"card": {"brand of " + asked.Card}}}
	}
	if shuffled {
		rand.Shuffle(len(items), func(i, k int) { items[i], items[k] = items[k], items[i] })
	}
	text, err := json.Marshal(map[string]any{"cards": items})
	if err != nil {
		panic(err)
	}
	return answer{header: http.Header{"Content-Type": {"application/json"}}, body: text}
}

func attemptsOfLookup(err error) int {
	if e, ok := errors.AsType[*bins.Error](err); ok {
		return e.Attempts
	}
	return -1
}

func checkLookupError(c *call, err error) {
	if errors.Is(err, bins.ErrMissing) {
		c.w.violate(wrongAnswer, "%s: %v, and the service leaves out none", c, err)
	} else if e, ok := errors.AsType[*bins.Error](err); !ok || !hasCondition(e) {
		c.w.violate(untyped, "%s: %T: %v", c, err, err)
	}
}

// conditions are those that all three packages have.
var conditions = []error{
	bins.ErrInvalidArgument, bins.ErrLocalLimit, bins.ErrCredential, bins.ErrNoAnswer, bins.ErrTimeout, bins.ErrBadRequest,
	bins.ErrUnauthorized, bins.ErrForbidden, bins.ErrNotFound, bins.ErrConflict, bins.ErrTooLarge, bins.ErrRateLimited,
	bins.ErrServer, bins.ErrRedirect, bins.ErrBadResponse, bins.ErrResponseTooLarge, context.Canceled, context.DeadlineExceeded,
}

func hasCondition(err error) bool {
	return slices.ContainsFunc(conditions, func(condition error) bool { return errors.Is(err, condition) })
}
