package sandbox

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
)

const maxCards = 50

//go:embed cards.json
var cardsJSON []byte

// A result is one item of a lookup response, as JSON.
type result struct {
	plain, enhanced []byte
	own             bool // set by [Engine.SetResult]
}

// SetResult makes item the response for card and for every identifier that starts
// with it, unless a longer one matches. The item is sent as it is, whether
// enhanced or not, even when it is no item at all. An empty card stands for
// all identifiers otherwise unknown.
func (e *Engine) SetResult(card string, item json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	item = bytes.Clone(item)
	e.results[card] = result{item, item, true}
	e.longest = max(e.longest, len(card))
}

// SetLookup makes f serve the identifiers for which it returns an item, ahead
// of all others. It is called concurrently.
func (e *Engine) SetLookup(f func(card string) json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.makeItem = f
}

func (e *Engine) lookup(r *http.Request, body []byte) response {
	if a, ok := checkPost(r); !ok {
		return a
	}
	if !authorized(r) {
		return unauthorized("a bearer credential is required")
	}
	h := e.like()
	if !h.trusts(r) {
		return failure(h.unauthorized, "unauthorized", "the credential is not valid")
	}
	findings := CheckBody(Bins, body)
	f, refused := refusal(findings)
	if refused && !f.bounds {
		return badRequest(http.StatusBadRequest, f)
	}
	cards, enhanced := readLookup(body, len(findings) > 0)
	success := h.bound(len(cards))
	if success >= 300 {
		return badRequest(success, f)
	}
	items := make([]lookupItem, len(cards))
	for i, card := range cards {
		items[i] = e.result(card, enhanced, h)
	}
	list, status := h.lookup(items, enhanced)
	if status > 0 {
		return failure(status, "unknown_bin", "a card is not known")
	}
	body = fmt.Appendf(nil, `{"cards":[%s]}`, bytes.Join(list, []byte(",")))
	return response{status: success, contentType: "application/json", body: body}
}

// readLookup reads a body that was checked. With unknown members it is read by
// exact names, because encoding/json would take CARD for card.
func readLookup(body []byte, exact bool) (cards []string, enhanced *bool) {
	if exact {
		var request map[string]json.RawMessage
		var elements []map[string]json.RawMessage
		json.Unmarshal(body, &request)
		json.Unmarshal(request["cards"], &elements)
		json.Unmarshal(request["enhanced"], &enhanced)
		for _, element := range elements {
			var card string
			json.Unmarshal(element["card"], &card)
			cards = append(cards, card)
		}
		return cards, enhanced
	}
	var request struct {
		Cards []struct {
			Card string `json:"card"`
		} `json:"cards"`
		Enhanced *bool `json:"enhanced"`
	}
	json.Unmarshal(body, &request)
	for _, c := range request.Cards {
		cards = append(cards, c.Card)
	}
	return cards, request.Enhanced
}

func (e *Engine) result(card string, enhanced *bool, h *habits) lookupItem {
	e.mu.Lock()
	makeItem := e.makeItem
	e.mu.Unlock()
	if makeItem != nil {
		if item := makeItem(card); item != nil {
			return lookupItem{card, item, true}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for n := min(len(card), e.longest); n >= 0; n-- {
		found, ok := e.results[card[:n]]
		switch {
		case ok && h.enhanced == nil && enhanced != nil && *enhanced:
			return lookupItem{card, found.enhanced, found.own}
		case ok:
			return lookupItem{card, found.plain, found.own}
		}
	}
	unknown, _ := json.Marshal(map[string]any{"bin": card[:min(len(card), 8)], "data": nil, "error": "unknown bin"})
	return lookupItem{card, unknown, false}
}

// decode wants one JSON value and only known members.
func decode(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one value")
	}
	return nil
}

var enhance = strings.NewReplacer(
	`"alm":null`, `"alm":false`,
	`"multi_account_access_indicator":null`, `"multi_account_access_indicator":"N"`,
)

var parseCards = sync.OnceValue(func() map[string]result {
	var items []json.RawMessage
	if err := json.Unmarshal(cardsJSON, &items); err != nil {
		panic(err)
	}
	results := make(map[string]result, len(items))
	for _, item := range items {
		var key struct {
			BIN string `json:"bin"`
		}
		var plain bytes.Buffer
		if err := errors.Join(json.Unmarshal(item, &key), json.Compact(&plain, item)); err != nil {
			panic(err)
		}
		results[key.BIN] = result{plain: plain.Bytes(), enhanced: []byte(enhance.Replace(plain.String()))}
	}
	return results
})

func builtinResults() (results map[string]result, longest int) {
	results = maps.Clone(parseCards())
	for card := range results {
		longest = max(longest, len(card))
	}
	return results, longest
}
