package sandbox

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
)

//go:embed cards.json
var cardsJSON []byte

// A result is one item of a lookup response, as JSON.
type result struct {
	plain, enhanced []byte
}

// SetResult makes item the response for card and for every identifier that starts
// with it, unless a longer one matches. The item is sent unchanged, enhanced or not,
// and need not be a valid one. An empty card sets the item of all unknown
// identifiers.
func (e *Engine) SetResult(card string, item json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	item = bytes.Clone(item)
	e.results[card] = result{item, item}
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
	if !authorized(r) {
		return unauthorized("a bearer credential is required")
	}
	members, refusal := readPost(Bins, r, body)
	if refusal != nil {
		return *refusal
	}
	enhanced, _ := members["enhanced"].(bool)
	var items [][]byte
	for _, element := range members["cards"].([]any) {
		card, _ := element.(map[string]any)["card"].(string)
		items = append(items, e.result(card, enhanced))
	}
	body = fmt.Appendf(nil, `{"cards":[%s]}`, bytes.Join(items, []byte(",")))
	return response{status: http.StatusOK, contentType: "application/json", body: body}
}

func (e *Engine) result(card string, enhanced bool) []byte {
	e.mu.Lock()
	makeItem := e.makeItem
	e.mu.Unlock()
	if makeItem != nil {
		if item := makeItem(card); item != nil {
			return item
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for n := min(len(card), e.longest); n >= 0; n-- {
		found, ok := e.results[card[:n]]
		switch {
		case ok && enhanced:
			return found.enhanced
		case ok:
			return found.plain
		}
	}
	unknown, _ := json.Marshal(map[string]any{"bin": card[:min(len(card), 8)], "data": nil, "error": "unknown bin"})
	return unknown
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
