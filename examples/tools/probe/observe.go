package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/mask"
)

// A fact is what was seen of one entry: statuses, names, types, counts and times. The only
// value in it is the code of an error, if it looks like one.
type fact struct {
	Status int   // 0: no response
	Millis int64 // until the response's header
	Cut    bool  // the body is incomplete

	Headers   []string
	MediaType string
	Length    bool // announced
	Bytes     int  // of the body, as far as it is read
	JSON      bool

	// Members counts the types of each member of a JSON body. For a lookup they are
	// those of the items.
	Members map[string]map[string]int
	Code    string
	Words   []string // documented refund members that a refusal's text has
	Repeats bool     // the body is that of the first refund

	Cards int // asked for
	Items []item
}

// An item is what one item of a lookup showed.
type item struct {
	Card  int // the one that bin is or begins: 1 is the first. 0: none, or several
	BIN   int // its length
	Data  bool
	Error string // its type
}

const (
	maxBody    = 1 << 20
	maxMembers = 300
)

// observe reduces a response to its fact, and returns its body.
func (s *sender) observe(f *fact, e *entry, resp *http.Response) []byte {
	body, err := readBody(resp)
	f.Status, f.Cut, f.Length, f.Bytes = resp.StatusCode, err != nil, resp.ContentLength >= 0, len(body)
	for name, values := range resp.Header {
		name = s.words.shown(name)
		if name == "Etag" && strings.HasPrefix(values[0], "W/") {
			name += " (weak)"
		}
		f.Headers = append(f.Headers, name)
	}
	slices.Sort(f.Headers)
	f.Headers = slices.Compact(f.Headers)
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	f.MediaType = s.words.shown(mediaType)
	if f.Cut {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	var value any
	f.JSON = in.Decode(&value) == nil && !in.More()
	if e.method == http.MethodGet && f.Status/100 == 2 && !e.error {
		return nil // a result: its content is not looked at
	}
	f.Members = map[string]map[string]int{}
	members, isObject := value.(map[string]any)
	items, isList := members["cards"].([]any)
	switch {
	case e.cards != nil && f.Status/100 == 2 && isList:
		f.Cards = len(e.cards)
		for _, v := range items {
			s.walk(f, "", v)
			f.Items = append(f.Items, newItem(e.cards, v))
		}
	case f.JSON && isObject:
		s.walk(f, "", value)
		f.Code = s.code(members)
	}
	if e.write && f.Status/100 == 4 {
		f.Words = refundWords(body)
	}
	return body
}

func readBody(resp *http.Response) ([]byte, error) {
	var reader io.Reader = resp.Body
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") { // although it was not asked for
		if plain, err := gzip.NewReader(resp.Body); err == nil {
			reader = plain
		}
	}
	body, err := io.ReadAll(io.LimitReader(reader, maxBody))
	return bytes.TrimPrefix(body, []byte("\ufeff")), err
}

// walk counts the types of the members of v, by their paths.
func (s *sender) walk(f *fact, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			name = path + s.words.shown(name)
			if f.Members[name] == nil {
				if len(f.Members) == maxMembers {
					continue
				}
				f.Members[name] = map[string]int{}
			}
			f.Members[name][typeOf(value)]++
			s.walk(f, name+".", value)
		}
	case []any:
		for _, element := range v {
			s.walk(f, path, element)
		}
	}
}

func typeOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "decimal"
		}
		return "integer"
	}
	return "null"
}

func newItem(asked []string, v any) (i item) {
	members, _ := v.(map[string]any)
	if failure, has := members["error"]; has {
		i.Error = typeOf(failure)
	}
	data, _ := members["data"].(map[string]any)
	_, i.Data = data["card"].(map[string]any)
	bin, _ := members["bin"].(string)
	i.BIN = len(bin)
	for n, card := range asked {
		switch {
		case bin == "" || !strings.HasPrefix(card, bin) || i.Card > 0 && asked[i.Card-1] == card:
		case i.Card > 0:
			i.Card = 0
			return i
		default:
			i.Card = n + 1
		}
	}
	return i
}

// code returns the code of an error body, in the documented place or at the top.
func (s *sender) code(members map[string]any) string {
	if inner, ok := members["error"].(map[string]any); ok {
		members = inner
	}
	code, _ := members["code"].(string)
	return s.words.shown(code)
}

// refundWords are the documented members that occur in the text of a refusal.
func refundWords(body []byte) (found []string) {
	var walk func(path string, v any)
	walk = func(path string, v any) {
		members, _ := v.(map[string]any)
		for name, value := range members {
			if regexp.MustCompile(`(?i)\b` + name + `\b`).Match(body) {
				found = append(found, path+name)
			}
			walk(path+name+".", value)
		}
	}
	walk("", fullRefund(""))
	slices.Sort(found)
	return found
}

// words decides which names and codes of the service are shown.
type words struct {
	own   []string
	known map[string]string
}

func newWords(p *plan) words {
	t := p.target
	return words{append(p.refundIDs(), t.apiKey, t.accessToken, t.merchantID, t.account, t.job, t.pending), map[string]string{"": ""}}
}

// looksEncoded matches what is no name, although it repeats nothing: the name of a header has
// lost its case, and its Base64 cannot be decoded.
var looksEncoded = regexp.MustCompile(`[0-9][A-Za-z0-9]{12}|[A-Za-z0-9]{12}[0-9]`)

// shown returns word if it looks like a name and repeats no credential or id of the
// caller, and otherwise "*".
func (w words) shown(word string) string {
	known, has := w.known[word]
	if !has {
		known = word
		repeats := mask.Echoes(word)
		if looksEncoded.MatchString(word) || fault.Loggable(strings.NewReplacer("/", "-", "+", "-").Replace(word)) == "" ||
			slices.ContainsFunc(w.own, func(own string) bool { return repeats(own, 4) }) {
			known = "*"
		}
		w.known[word] = known
	}
	return known
}
