package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/target"
)

// An answer is what the state file keeps of one: the members that the columns
// need, under the range it holds for or, without -ranges, under the identifier
// that was asked for.
type answer struct {
	ID    string          `json:"id,omitzero"` // "" for a range
	Time  int64           `json:"time"`        // in seconds since 1970
	Card  json.RawMessage `json:"card,omitzero"`
	Error string          `json:"error,omitzero"`

	low, high uint64 // of a range
}

// learn makes the answer to keep for a result, if any. What an answer without
// range says of a card number holds for that number alone, which must not be
// written down. A resumed run asks for it again if it comes again; so does a run
// that is never interrupted, whose cache does not keep it either.
func learn(columns []column, sent string, r *bins.Result, ranges bool) (*answer, error) {
	card, _ := r.Card()
	a := &answer{Time: time.Now().Unix(), Error: target.Line(r.Error)}
	if card != nil {
		var err error
		if a.Card, err = json.Marshal(cut(columns, card)); err != nil {
			return nil, err
		}
	}
	if low, high, ok := bounds(card); ranges && ok && holds(low, high, sent) {
		// A range so narrow would be a card number, or most of one.
		if high-low < 1e8-1 {
			return nil, nil
		}
		return a, nil
	}
	if mayBeCardNumber(sent) {
		return nil, nil
	}
	a.ID = sent
	return a, nil
}

// numberDigits is the length of the numbers that bound a range.
const numberDigits = 19

// bounds returns the range that a card's answer holds for.
func bounds(card *bins.Card) (low, high uint64, ok bool) {
	if card == nil || len(card.BINMin) != len(card.BINMax) || !isDigits(card.BINMin+card.BINMax) || len(card.BINMin) > numberDigits {
		return 0, 0, false
	}
	low, high = first(card.BINMin), last(card.BINMax)
	return low, high, low <= high
}

func holds(low, high uint64, id string) bool {
	return isDigits(id) && len(id) <= numberDigits && low <= first(id) && last(id) <= high
}

// first and last are the bounds of the numbers that begin with digits.
func first(digits string) uint64 { return pad(digits, "0") }
func last(digits string) uint64  { return pad(digits, "9") }

func pad(digits, with string) uint64 {
	// All numbers of 19 digits fit.
	n, _ := strconv.ParseUint(digits+strings.Repeat(with, numberDigits-len(digits)), 10, 64)
	return n
}

// recall teaches a cache the answers of earlier runs. A cache learns what range
// an answer holds for only from an answer, and so the answers are asked for once
// more, of a service that is the state file.
//
// Of ranges that lie in each other the narrower is used, so it has to be learned
// first: whatever is known already is not asked for. A wider one is then asked
// for by a number that no narrower one holds.
func recall(ctx context.Context, answers []answer, o bins.BulkOptions, cache *bins.MemoryCache) error {
	var service player
	client, err := service.client()
	if err != nil {
		return err
	}
	loader, err := bins.NewLoader(client, bins.LoaderOptions{
		Window: -1, Enhanced: o.Enhanced, Ranges: o.Ranges, Memory: cache,
	})
	if err != nil {
		return err
	}
	var usable []*answer
	for i := range answers {
		if a := &answers[i]; time.Since(time.Unix(a.Time, 0)) < cacheTTL && a.locate() {
			usable = append(usable, a)
		}
	}
	slices.SortStableFunc(usable, func(a, b *answer) int { return cmp.Compare(a.high-a.low, b.high-b.low) })
	for _, a := range usable {
		id := cmp.Or(a.ID, number(a.low))
		for id != "" {
			service.id, service.answer = id, a
			r, err := loader.Load(ctx, id)
			if err != nil {
				return err
			}
			card, _ := r.Card()
			low, high, ok := bounds(card)
			if a.ID != "" || !ok || low == a.low && high == a.high || high >= a.high {
				break
			}
			id = number(high + 1)
		}
	}
	return nil
}

// locate finds the bounds of an answer that holds for a range.
func (a *answer) locate() (ok bool) {
	if a.ID != "" {
		return true
	}
	var card bins.Card
	if json.Unmarshal(a.Card, &card) != nil {
		return false
	}
	a.low, a.high, ok = bounds(&card)
	return ok
}

func number(n uint64) string { return fmt.Sprintf("%0*d", numberDigits, n) }

// A player is a service that knows one answer.
type player struct {
	id     string
	answer *answer
}

func (p *player) client() (*bins.Client, error) {
	return bins.NewClient("https://state.invalid", bins.StaticToken("none"), bins.WithHTTPClient(&http.Client{Transport: p}))
}

func (p *player) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body.Close()
	item := map[string]any{"bin": p.id, "error": p.answer.Error}
	if p.answer.Card != nil {
		item["data"] = map[string]any{"card": p.answer.Card}
	}
	body, err := json.Marshal(map[string]any{"cards": []any{item}})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}
