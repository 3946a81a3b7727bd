package sandbox

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// OpenAPI describes the service as far as its interface does. Bodies of requests
// are checked against it, so that the sandbox and the document cannot differ.
//
//go:embed openapi.json
var OpenAPI []byte

// A Finding is a difference between a request's body and the interface.
type Finding struct {
	// Path names the member, as in cards[3].card; "" is the body itself.
	Path string `json:"path"`
	// Problem says what is the matter with it.
	Problem string `json:"problem"`
	// Refused tells whether the request was refused for it: it contradicts the
	// interface. A member that the interface does not have does not.
	Refused bool `json:"refused"`
	// Unknown is the name of a member that the interface does not have, the last
	// part of Path.
	Unknown string `json:"-"`

	bounds bool // the number of cards
}

func (f Finding) String() string {
	if f.Path == "" {
		return "the body " + f.Problem
	}
	return f.Path + " " + f.Problem
}

// maxFindings bounds what one body can have the sandbox say.
const maxFindings = 20

// CheckBody compares the body of a request with the interface. It names members
// that the interface does not have only where all that they are below is known.
func CheckBody(area Area, body []byte) []Finding {
	s := requestSchema(area)
	if s == nil {
		return nil
	}
	c := checker{in: body}
	if !json.Valid(body) {
		return []Finding{{Problem: "is not JSON", Refused: true}}
	}
	c.value(s)
	return c.findings
}

// refusal returns the first finding that the interface does not allow. One about
// the number of cards comes last.
func refusal(findings []Finding) (Finding, bool) {
	at := slices.IndexFunc(findings, func(f Finding) bool { return f.Refused && !f.bounds })
	if at < 0 {
		at = slices.IndexFunc(findings, func(f Finding) bool { return f.bounds })
	}
	if at < 0 {
		return Finding{}, false
	}
	return findings[at], true
}

// A schema is the part of JSON Schema that the requests are described with.
type schema struct {
	Type       string
	Properties map[string]*schema
	Items      *schema
	Required   []string
	MinItems   *int
	MaxItems   *int
}

var schemas = sync.OnceValue(func() map[string]*schema {
	var document struct {
		Components struct{ Schemas map[string]*schema }
	}
	if err := json.Unmarshal(OpenAPI, &document); err != nil {
		panic(err)
	}
	return document.Components.Schemas
})

func requestSchema(area Area) *schema {
	switch area {
	case Bins:
		return schemas()["LookupRequest"]
	case Refunds:
		return schemas()["Refund"]
	}
	return nil
}

// itemSchema is of the items of a lookup's response.
func itemSchema() *schema { return schemas()["LookupResponse"].Properties["cards"].Items }

// badRequest refuses a body for what was found.
func badRequest(status int, f Finding) response {
	return failed(status, apiError{"bad_request", f.String(), map[string]any{"path": f.Path}})
}

// A checker walks over valid JSON. It decodes nothing but names with escapes:
// lookups by the million are checked.
type checker struct {
	in       []byte
	at       int
	steps    []step
	findings []Finding
}

// A step leads from a value to one in it.
type step struct {
	name  []byte
	index int // of an element, which has no name
}

// path is where the checker stands.
func (c *checker) path() string {
	var b strings.Builder
	for _, s := range c.steps {
		switch {
		case s.name == nil:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case b.Len() > 0:
			b.WriteByte('.')
			fallthrough
		default:
			b.Write(s.name)
		}
	}
	return b.String()
}

func (c *checker) refuse(format string, args ...any) {
	c.report(Finding{Path: c.path(), Problem: fmt.Sprintf(format, args...), Refused: true})
}

func (c *checker) unknown(name []byte) {
	c.report(Finding{Path: c.path(), Problem: "is not a member of the interface", Unknown: string(name)})
}

func (c *checker) report(f Finding) {
	if len(c.findings) < maxFindings {
		c.findings = append(c.findings, f)
	}
}

// value checks the value at the current position, and moves behind it. A nil
// schema allows everything.
func (c *checker) value(s *schema) {
	c.space()
	begin := c.at
	var found string
	switch c.in[c.at] {
	case '{':
		found = "object"
	case '[':
		found = "array"
	case '"':
		found = "string"
	case 't', 'f':
		found = "boolean"
	case 'n':
		found = "null"
	default:
		found = "number"
	}
	if s != nil && found != s.Type && !(found == "number" && s.Type == "integer") {
		c.refuse("is %s where the interface has %s", withArticle(found), withArticle(s.Type))
		s = nil
	}
	switch found {
	case "object":
		c.object(s)
	case "array":
		c.array(s)
	case "string":
		c.text()
	default:
		for c.at < len(c.in) && bytes.IndexByte([]byte(",]} \t\r\n"), c.in[c.at]) < 0 {
			c.at++
		}
	}
	if s != nil && found == "number" && bytes.ContainsAny(c.in[begin:c.at], ".eE") {
		c.refuse("is a decimal number where the interface has an integer")
	}
}

func withArticle(name string) string {
	switch name {
	case "null":
		return name
	case "array", "integer", "object":
		return "an " + name
	}
	return "a " + name
}

func (c *checker) object(s *schema) {
	var seen []string
	for c.next('}') {
		name := c.name()
		var member *schema
		c.steps = append(c.steps, step{name: name})
		if s != nil && s.Properties != nil {
			if member = s.Properties[string(name)]; member == nil {
				c.unknown(name)
			} else if s.Required != nil {
				seen = append(seen, string(name))
			}
		}
		c.value(member)
		c.steps = c.steps[:len(c.steps)-1]
	}
	if s == nil {
		return
	}
	for _, name := range s.Required {
		if !slices.Contains(seen, name) {
			c.steps = append(c.steps, step{name: []byte(name)})
			c.refuse("is missing")
			c.steps = c.steps[:len(c.steps)-1]
		}
	}
}

func (c *checker) array(s *schema) {
	var element *schema
	if s != nil {
		element = s.Items
	}
	n := 0
	for c.next(']') {
		c.steps = append(c.steps, step{index: n})
		c.value(element)
		c.steps = c.steps[:len(c.steps)-1]
		n++
	}
	if s != nil && s.MinItems != nil && s.MaxItems != nil && (n < *s.MinItems || n > *s.MaxItems) {
		c.findings = append(c.findings, Finding{
			Path: c.path(), Problem: fmt.Sprintf("has %d elements where the interface has %d to %d", n, *s.MinItems, *s.MaxItems),
			Refused: true, bounds: true,
		})
	}
}

// next moves to the next member or element, and tells whether there is one. Its
// argument is what ends them.
func (c *checker) next(end byte) bool {
	c.space()
	switch c.in[c.at] {
	case end:
		c.at++
		return false
	case '{', '[', ',':
		c.at++
		c.space()
		if c.in[c.at] == end {
			c.at++
			return false
		}
	}
	return true
}

// text moves behind a string, and returns it with its quotes.
func (c *checker) text() []byte {
	begin := c.at
	for c.at++; c.in[c.at] != '"'; c.at++ {
		if c.in[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
	return c.in[begin:c.at]
}

// name moves behind the name of a member and its colon.
func (c *checker) name() []byte {
	quoted := c.text()
	c.space()
	c.at++
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	json.Unmarshal(quoted, &s)
	return []byte(s)
}

func (c *checker) space() {
	for c.in[c.at] == ' ' || c.in[c.at] == '\t' || c.in[c.at] == '\n' || c.in[c.at] == '\r' {
		c.at++
	}
}

// checkPost returns false and the response when a request with a JSON body is not
// one.
func checkPost(r *http.Request) (response, bool) {
	if r.Method != http.MethodPost {
		return methodNotAllowed(http.MethodPost), false
	}
	if mediaType(r) != "application/json" {
		return failure(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type must be application/json"), false
	}
	return response{}, true
}

func mediaType(r *http.Request) string {
	name, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(name))
}

func authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return scheme == "Bearer" && strings.TrimSpace(token) != ""
}

// MemberNames returns the names of all members that the interface has.
func MemberNames() []string {
	var names []string
	var walk func(s *schema)
	walk = func(s *schema) {
		for name, member := range s.Properties {
			names = append(names, name)
			walk(member)
		}
		if s.Items != nil {
			walk(s.Items)
		}
	}
	for _, s := range schemas() {
		walk(s)
	}
	return names
}
