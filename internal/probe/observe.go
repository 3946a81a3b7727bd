package probe

import (
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/transport"
)

// A Fact is what one response showed: statuses, names and forms, never a value.
// Digests tell equal values from different ones, by the ledger's own key.
type Fact struct {
	Entry     string   `json:"entry"`
	Status    int      `json:"status,omitempty"` // 0: no response
	Cut       bool     `json:"cut,omitempty"`    // what came of the body says nothing
	MediaType string   `json:"media_type,omitempty"`
	Headers   []string `json:"headers,omitempty"` // of those that headerNames allows
	Code      string   `json:"code,omitempty"`    // of an error body
	Errors    []string `json:"errors,omitempty"`  // forms of an error body
	Named     []string `json:"named,omitempty"`   // refund members that a refusal names
	Shape     string   `json:"shape,omitempty"`   // types in place of values
	Body      string   `json:"body,omitempty"`    // digest

	Asked []string   `json:"asked"` // identifiers of a lookup
	Items []ItemFact `json:"items,omitempty"`

	Content   string `json:"content,omitempty"` // csv, ndjson, json or other
	Length    bool   `json:"length,omitempty"`
	Validator string `json:"validator,omitempty"`

	TLS  []string `json:"tls,omitempty"`
	ALPN string   `json:"alpn,omitempty"`
	Idle string   `json:"idle,omitempty"` // what became of a connection
}

// An ItemFact is what one item of a lookup showed.
type ItemFact struct {
	Echo    int               `json:"echo"` // index of the one card asked for that bin belongs to, or -1
	Digits  int               `json:"digits,omitempty"`
	Data    bool              `json:"data,omitempty"`
	Error   bool              `json:"error,omitempty"`
	Nulls   []string          `json:"nulls,omitempty"`
	Digest  string            `json:"digest,omitempty"`
	Members map[string]string `json:"members,omitempty"` // digests, where they are compared
}

const maxBody = 1 << 20

// headerName are the headers whose names are kept beside request ids and quotas.
var headerName = regexp.MustCompile(`^(Deprecation|Sunset|Etag|Last-Modified|Accept-Ranges|Content-Range|Retry-After)$`)

// observe reduces a response to its facts.
func (e *sender) observe(entry *Entry, asked []string, resp *http.Response) *Fact {
	f := &Fact{Entry: entry.ID, Asked: asked, Length: resp.ContentLength >= 0}
	body, err := readBody(resp)
	for name := range resp.Header {
		if (headerName.MatchString(name) || requestIDName.MatchString(name) || quotaName.MatchString(name)) && e.harmless(name) == name {
			f.Headers = append(f.Headers, name)
		}
	}
	slices.Sort(f.Headers)
	f.Status = resp.StatusCode
	if f.Cut = err != nil; f.Cut {
		return f
	}
	f.MediaType, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	f.MediaType = e.harmless(f.MediaType)
	failed := f.Status/100 != 2
	if failed || slices.Contains(entry.Points, "download.pending") || slices.Contains(entry.Points, "download.missing") {
		e.observeError(f, body)
	}
	switch {
	case failed:
		f.Named = namedIn(body)
	case entry.Area == "bins":
		e.observeItems(f, slices.Contains(entry.Points, "lookup.enhanced"), body)
	case entry.Area == "updater":
		f.Content, f.Validator = contentKind(f.MediaType, body), validator(resp.Header)
	default:
		f.Shape, f.Body = e.shape(body), e.digest(body)
	}
	return f
}

func readBody(resp *http.Response) ([]byte, error) {
	var reader io.Reader = resp.Body
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") { // it was not asked for
		if plain, err := gzip.NewReader(resp.Body); err == nil {
			reader = plain
		}
	}
	body, err := io.ReadAll(io.LimitReader(reader, maxBody))
	return bytes.TrimPrefix(body, []byte("\ufeff")), err
}

func (e *sender) digest(data []byte) string {
	mac := hmac.New(sha256.New, e.ledger.key)
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// harmless returns a name or a code that can be shown, and "*" for any other.
func (e *sender) harmless(s string) string {
	if _, known := e.shown[s]; !known {
		t, echo := e.plan.Target, func(own string) bool { return mask.Holds(s, own) }
		own := append(e.plan.RefundIDs(), t.APIKey, t.AccessToken, t.MerchantID, t.Account, t.Job, t.Pending)
		e.shown[s] = s
		if slices.ContainsFunc(own, echo) || s != "" && transport.Loggable(strings.NewReplacer("/", "-", "+", "-").Replace(s)) == "" {
			e.shown[s] = "*"
		}
	}
	return e.shown[s]
}

// observeError looks for a code, and for which of the known forms the body has.
func (e *sender) observeError(f *Fact, body []byte) {
	var top, inner struct{ Error, Message, Code json.RawMessage }
	_ = json.Unmarshal(body, &top)
	_ = json.Unmarshal(top.Error, &inner)
	code := inner.Code
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		f.Errors = []string{"empty"}
	case inner.Code != nil || inner.Message != nil:
		f.Errors = []string{"documented object"}
	case top.Message == nil && top.Code == nil:
		f.Errors = []string{"other"}
	default:
		code = top.Code
		if top.Message != nil {
			f.Errors = []string{"message"}
		}
		if top.Code != nil {
			f.Errors = append(f.Errors, "code")
		}
	}
	if string(code) != "null" {
		f.Code = e.harmless(strings.Trim(string(code), `"`))
	}
}

func (e *sender) observeItems(f *Fact, compare bool, body []byte) {
	var response struct{ Cards, Error json.RawMessage }
	var cards []map[string]json.RawMessage
	if json.Unmarshal(body, &response) != nil || json.Unmarshal(response.Cards, &cards) != nil ||
		len(cards) == 0 && bytes.HasPrefix(response.Error, []byte("{")) { // a failure, whatever its status
		e.observeError(f, body)
		return
	}
	f.Items = []ItemFact{}
	for _, members := range cards {
		var item ItemFact
		failure := string(members["error"])
		item.Error = failure != "" && failure != "null" && failure != `""`
		item.Echo, item.Digits = match(f.Asked, strings.Trim(string(members["bin"]), `"`))
		var data struct{ Card map[string]any }
		_ = json.Unmarshal(members["data"], &data)
		if item.Data = len(data.Card) > 0; item.Data {
			for _, name := range []string{"bin", "error"} {
				if string(members[name]) == "null" {
					item.Nulls = append(item.Nulls, name)
				}
			}
			digests := map[string]string{}
			e.walk("", data.Card, func(name string, value any) {
				if value == nil {
					item.Nulls = append(item.Nulls, name)
				}
				if name != "correlation_id" && name != "pan_or_token" { // they may differ from response to response
					text, _ := json.Marshal(value)
					if list, _ := value.([]any); text[0] == '{' || bytes.HasPrefix(text, []byte("[{")) { // its members come by themselves
						text = fmt.Append(nil, "object", len(list))
					}
					digests[name] += e.digest(text)
				}
			})
			item.Nulls = unique(item.Nulls)
			whole, _ := json.Marshal(digests)
			item.Digest = e.digest(whole)
			if compare {
				item.Members = digests
			}
		}
		f.Items = append(f.Items, item)
	}
}

// match finds the one card that bin is or begins.
func match(asked []string, bin string) (index, digits int) {
	if bin == "" || bin == "null" {
		return -1, 0
	}
	cards := unique(slices.DeleteFunc(slices.Clone(asked), func(card string) bool { return !strings.HasPrefix(card, bin) }))
	if len(cards) != 1 {
		return -1, len(bin)
	}
	return slices.Index(asked, cards[0]), len(bin)
}

// walk calls visit for each member, by the name that the interface has for it.
func (e *sender) walk(path string, v any, visit func(path string, value any)) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			name = path + e.harmless(name)
			visit(name, value)
			e.walk(name+".", value, visit)
		}
	case []any:
		for _, element := range v {
			e.walk(path, element, visit)
		}
	}
}

// shape is a JSON document with types in place of values, or "" for anything else.
// The first element of a list stands for all.
func (e *sender) shape(body []byte) string {
	if !json.Valid(body) {
		return ""
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	return e.shapeOf(decoder)
}

func (e *sender) shapeOf(decoder *json.Decoder) string {
	token, _ := decoder.Token()
	switch t := token.(type) {
	case json.Delim:
		var parts []string
		for decoder.More() {
			name := ""
			if t == '{' {
				text, _ := decoder.Token()
				name = fmt.Sprintf("%q:", e.harmless(text.(string)))
			}
			if part := name + e.shapeOf(decoder); t == '{' || parts == nil {
				parts = append(parts, part)
			}
		}
		_, _ = decoder.Token()
		return string(rune(t)) + strings.Join(parts, ",") + string(rune(t)+2)
	case json.Number:
		if strings.ContainsAny(t.String(), ".eE") {
			return `"number"`
		}
		return `"integer"`
	case string:
		return `"string"`
	case bool:
		return `"boolean"`
	}
	return `"null"`
}

func validator(h http.Header) string {
	switch tag := h.Get("Etag"); {
	case tag != "" && !strings.HasPrefix(tag, "W/"):
		return "strong validator"
	case h.Get("Last-Modified") != "":
		return "date"
	}
	return "no validator"
}

// contentKind looks at the content, and at its media type only where that is not
// enough. It is "" for what nobody can tell.
func contentKind(mediaType string, body []byte) string {
	text, whole := strings.TrimSpace(string(body)), len(body) < maxBody
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	if text == "" {
		return ""
	}
	braced := text[0] == '{' || text[0] == '['
	switch {
	case braced && len(lines) > 1 && json.Valid([]byte(lines[0])) && json.Valid([]byte(lines[1])),
		braced && len(lines) == 1 && regexp.MustCompile(`ndjson|jsonl|json-?lines`).MatchString(mediaType):
		return "ndjson"
	case braced && (!whole || json.Valid(body)), strings.HasSuffix(mediaType, "json") && json.Valid(body):
		return "json"
	case braced || text[0] == '<' || strings.ContainsAny(text[:min(len(text), 512)], "\x00\x01\x02\x03\x04\x05\x06\x07\x08"):
		return "other"
	case strings.Contains(mediaType, "csv"):
		return "csv"
	}
	for _, delimiter := range ",;\t|" {
		table := csv.NewReader(strings.NewReader(text))
		table.Comma, table.LazyQuotes, table.FieldsPerRecord = delimiter, true, -1
		header, _ := table.Read()
		if row, err := table.Read(); err == nil && len(header) > 1 && len(row) >= len(header) {
			return "csv"
		}
	}
	return "other"
}
