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

// A result is one item of a lookup answer, as JSON.
type result struct{ plain, enhanced []byte }

// SetResult makes item the answer for card and for every identifier that starts
// with it, unless a longer one matches. The item is sent as it is, whether
// enhanced or not, even when it is no item at all. An empty card answers for
// all identifiers otherwise unknown.
func (e *Engine) SetResult(card string, item json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	item = bytes.Clone(item)
	e.results[card] = result{item, item}
	e.longest = max(e.longest, len(card))
}

// SetLookup makes f answer the identifiers for which it returns an item, ahead
// of all others. It is called concurrently.
func (e *Engine) SetLookup(f func(card string) json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.makeItem = f
}

func (e *Engine) lookup(r *http.Request, body []byte) answer {
	if a, ok := checkPost(r); !ok {
		return a
	}
	if !authorized(r) {
		return unauthorized("a bearer credential is required")
	}
	var req struct {
		Cards []struct {
			Card string `json:"card"`
		} `json:"cards"`
		Enhanced bool `json:"enhanced"`
	}
	if err := decode(body, &req); err != nil {
		return failure(http.StatusBadRequest, "bad_request", "the body is not a lookup request")
	}
	if n := len(req.Cards); n < 1 || n > maxCards {
		return failure(http.StatusBadRequest, "bad_request", "cards must have 1 to 50 elements")
	}
	items := make([][]byte, len(req.Cards))
	for i, c := range req.Cards {
		items[i] = e.result(c.Card, req.Enhanced)
	}
	list := bytes.Join(items, []byte(","))
	return answer{contentType: "application/json", body: fmt.Appendf(nil, `{"cards":[%s]}`, list)}
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
		results[key.BIN] = result{plain.Bytes(), []byte(enhance.Replace(plain.String()))}
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
