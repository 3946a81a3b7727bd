package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SetProfile has e decide like the service that p is of. Results, jobs and
// responses that are set explicitly stay as they are set. nil is no profile.
func (e *Engine) SetProfile(p *Profile) error {
	h := &habits{}
	if p != nil {
		var err error
		if h, err = p.habits(); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.habits = h
	e.jobs[jobKey{"", defaultJobID}] = newJob(h.defaultJob())
	return nil
}

func (e *Engine) like() *habits {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.habits
}

// IdleTimeout is when the profile has idle connections closed, 0 for never.
func (e *Engine) IdleTimeout() time.Duration { return time.Duration(e.like().idle) * time.Second }

// trusts tells whether the credential of r is not one that the profile refuses.
func (h *habits) trusts(r *http.Request) bool {
	return h.unauthorized == 0 || !strings.HasSuffix(r.Header.Get("Authorization"), brokenToken)
}

// bound is the status of a lookup of so many cards.
func (h *habits) bound(cards int) int {
	switch {
	case cards < 1:
		return cmp.Or(h.noCards, http.StatusBadRequest)
	case cards > maxCards:
		return cmp.Or(h.manyCards, http.StatusBadRequest)
	}
	return http.StatusOK
}

// A lookupItem is an item of a response on its way to what the profile makes of
// it.
type lookupItem struct {
	card string
	json []byte
	own  bool // set by the sandbox's user, and so left alone
}

// lookup turns the items of a request's cards into those of the response. A
// status above 0 is the response instead.
func (h *habits) lookup(items []lookupItem, enhanced *bool) (list [][]byte, status int) {
	seen := make(map[string]bool)
	for _, item := range items {
		if h.duplicates == "merged" && seen[item.card] {
			continue
		}
		seen[item.card] = true
		if !item.own {
			if item.json, status = h.item(item, enhanced); status > 0 {
				return nil, status
			}
		}
		if item.json != nil {
			list = append(list, item.json)
		}
	}
	switch {
	case h.items == "fewer" && len(list) > 1:
		list = list[:len(list)-1]
	case h.items == "more" && len(list) > 0:
		list = append(list, list[len(list)-1])
	}
	if h.order == "changed" {
		slices.Reverse(list)
	}
	return list, 0
}

// changesItems tells whether an item of the data set is sent as it is.
func (h *habits) changesItems() bool {
	return h.echo != "" || h.unknown != "" || h.nulls != nil || h.enhanced != nil
}

// item returns nil for an item that is left out.
func (h *habits) item(from lookupItem, enhanced *bool) (item []byte, status int) {
	if !h.changesItems() {
		return from.json, 0
	}
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(from.json))
	decoder.UseNumber()
	if decoder.Decode(&members) != nil {
		return from.json, 0
	}
	if _, known := members["data"].(map[string]any); known {
		h.setNulls(members, from.card)
		h.enhance(members, enhanced)
	} else {
		switch h.unknown {
		case "left out":
			return nil, 0
		case "status":
			return nil, h.unknownStatus
		case "null data":
			delete(members, "error")
		}
	}
	switch h.echo {
	case "whole":
		members["bin"] = from.card
	case "prefix":
		members["bin"] = from.card[:min(len(from.card), h.echoDigits)]
	case "absent":
		delete(members, "bin")
	}
	item, _ = json.Marshal(members)
	return item, 0
}

// setNulls makes members null. Where an object is to be null, and members of it are too,
// or differ when enhanced, half of the cards have the one and half the other.
func (h *habits) setNulls(item map[string]any, card string) {
	if h.nulls == nil {
		return
	}
	dropNulls(item)
	even := strings.TrimRight(card, "13579") == card
	for _, name := range h.nulls {
		within := func(other string) bool { return strings.HasPrefix(other, name+".") }
		if differs := slices.ContainsFunc(h.enhanced, within); differs && !even || !differs && even && slices.ContainsFunc(h.nulls, within) {
			continue
		}
		change(item, memberPath(name), false, func(parent map[string]any, member string) { parent[member] = nil })
	}
}

func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value == nil {
				delete(v, name)
			}
			dropNulls(value)
		}
	case []any:
		for _, element := range v {
			dropNulls(element)
		}
	}
}

func (h *habits) enhance(item map[string]any, enhanced *bool) {
	like := h.enhancedDefault
	if enhanced != nil {
		like = strconv.FormatBool(*enhanced)
	}
	for _, name := range h.enhanced {
		path := memberPath(name)
		change(item, path, h.nulls == nil, func(parent map[string]any, member string) {
			whole := parent[member]
			if whole == nil {
				whole = sample(path, "Y", true, 1)
			}
			switch {
			case like == "true":
				parent[member] = whole
			case like == "neither":
				parent[member] = sample(path, "X", false, 2)
				if fmt.Sprint(parent[member]) == fmt.Sprint(whole) {
					parent[member] = sample(path, "Z", true, 3)
				}
			case like == "false" && !slices.Contains(h.nulls, name):
				delete(parent, member)
			}
		})
	}
}

// memberPath is where an item has a member of the interface.
func memberPath(name string) []string {
	name = strings.TrimPrefix(name, "data.card.")
	switch name {
	case "bin", "data", "error":
		return []string{name}
	}
	return append([]string{"data", "card"}, strings.Split(name, ".")...)
}

// change calls f for a member in each object that may have it. Objects on the way
// that are missing are made, and so are those that are null if fill is set.
func change(v any, path []string, fill bool, f func(parent map[string]any, member string)) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			change(element, path, fill, f)
		}
	case map[string]any:
		if len(path) == 1 {
			f(v, path[0])
			return
		}
		if value, has := v[path[0]]; !has || fill && value == nil {
			v[path[0]] = make(map[string]any)
			if path[0] == "additional_card_brands" {
				v[path[0]] = []any{v[path[0]]}
			}
		}
		change(v[path[0]], path[1:], fill, f)
	}
}

// sample is a value of the type that the interface has for a member.
func sample(path []string, text string, flag bool, number int) any {
	s := itemSchema()
	for _, name := range path {
		if s != nil && s.Type == "array" {
			s = s.Items
		}
		if s != nil {
			s = s.Properties[name]
		}
	}
	if s == nil {
		return text
	}
	switch s.Type {
	case "boolean":
		return flag
	case "integer":
		return number
	case "object":
		return map[string]any{"example": text}
	case "array":
		return make([]any, number)
	}
	return text
}

// finish gives a response of area what all of them have.
func (h *habits) finish(area Area, a *response, number int) {
	if area == Bins && a.failure != nil && h.errorForm != nil {
		h.formError(a)
	}
	if h.requestID == "" && len(h.quota) == 0 {
		return
	}
	if a.header == nil {
		a.header = make(http.Header)
	}
	if h.requestID != "" {
		a.header.Set(h.requestID, fmt.Sprintf("request-%d", number))
	}
	for _, name := range h.quota {
		value := 1000
		switch lower := strings.ToLower(name); {
		case strings.Contains(lower, "remaining"):
			value -= number % 1000
		case strings.Contains(lower, "reset"):
			value = 60
		}
		a.header.Set(name, strconv.Itoa(value))
	}
}

func (h *habits) formError(a *response) {
	members := make(map[string]string)
	for _, word := range h.errorForm {
		switch word {
		case "empty":
			a.body, a.contentType = nil, ""
			return
		case "other":
			a.body, a.contentType = []byte(a.failure.Message), "text/plain; charset=utf-8"
			return
		case "documented object":
			return
		case "message":
			members[word] = a.failure.Message
		case "code":
			members[word] = a.failure.Code
		}
	}
	a.body, _ = json.Marshal(members)
}

func (h *habits) defaultJob() Job {
	const size = 4 << 10
	switch h.content {
	case "ndjson":
		return Job{Content: Synthetic(NDJSON, size), ContentType: "application/x-ndjson"}
	case "json":
		return Job{Content: Synthetic(JSONArray, size), ContentType: "application/json"}
	case "other":
		return Job{Content: strings.NewReader("an invented result\n"), ContentType: "application/octet-stream"}
	}
	return defaultJob()
}

// result gives the download of a job the habits of the profile.
func (h *habits) result(a *response) {
	a.noRanges = a.noRanges || h.ranges == "no ranges"
	a.ignoreIfRange = h.ignoreIfRange
	a.chunked = h.noLength
	if h.validator != "" && h.validator != "strong validator" {
		a.header.Del("ETag")
	}
	if h.validator == "date" && a.modified.IsZero() {
		a.modified = profileDate
	}
}

// missingMember returns the first member of a refund that the profile requires
// and that is not there.
func (h *habits) missingMember(record map[string]any) string {
	for _, name := range h.required {
		var v any = record
		for part := range strings.SplitSeq(name, ".") {
			members, _ := v.(map[string]any)
			v = members[part]
		}
		if v == nil {
			return name
		}
	}
	return ""
}

// accept is the response to a refund that is accepted, with values that depend on
// the seed alone.
func (r *receipt) accept(seed uint64) response {
	a := response{status: r.status, contentType: r.mediaType}
	if r.shape == nil {
		return a
	}
	filled := false
	a.body = typeName.ReplaceAllFunc(r.shape, func(found []byte) []byte {
		if found[len(found)-1] == ':' {
			return found // a member that has the name of a type
		}
		filled = true
		switch string(bytes.Trim(found, `"`)) {
		case "integer":
			return strconv.AppendUint(nil, seed%1_000_000, 10)
		case "number":
			return fmt.Appendf(nil, "%d.5", seed%1_000_000)
		case "boolean":
			return []byte("true")
		case "null":
			return []byte("null")
		}
		return fmt.Appendf(nil, `"r%x"`, seed%0xffffff)
	})
	if !filled && seed%2 == 1 {
		a.body = append(a.body, '\n') // or no two of them would differ
	}
	return a
}

// profileDate is when the results of a profile were last modified.
var profileDate = time.Date(2031, 7, 1, 0, 0, 0, 0, time.UTC)

var typeName = regexp.MustCompile(`"(string|integer|number|boolean|null)"\s*:?`)
