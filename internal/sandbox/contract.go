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

// OpenAPI describes the documented part of the service. The sandbox checks request bodies
// against it, so the two cannot differ.
//
//go:embed openapi.json
var OpenAPI []byte

// A Finding is a difference between a request's body and the interface.
type Finding struct {
	// Path names the member, as in cards[3].card; "" is the body itself.
	Path string `json:"path"`
	// Problem says what is wrong with it.
	Problem string `json:"problem"`
	// Refused reports whether the member contradicts the interface, so that the
	// request was refused. A member that the interface does not have is accepted.
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

// maxFindings bounds the findings about one body.
const maxFindings = 20

// CheckBody compares the body of a request with the interface. It does not look for
// unknown members inside of unknown ones.
func CheckBody(area Area, body []byte) []Finding {
	s := requestSchema(area)
	if s == nil {
		return nil
	}
	if !json.Valid(body) {
		return []Finding{{Problem: "is not JSON", Refused: true}}
	}
	c := newChecker(body)
	c.value("", s)
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

// A schema is the part of JSON Schema that openapi.json uses.
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

// badRequest refuses a body because of f.
func badRequest(f Finding) response {
	return failed(http.StatusBadRequest, apiError{"bad_request", f.String(), map[string]any{"path": f.Path}})
}

// A checker walks over valid JSON.
type checker struct {
	in       *json.Decoder
	findings []Finding
}

func newChecker(body []byte) *checker {
	c := &checker{in: json.NewDecoder(bytes.NewReader(body))}
	c.in.UseNumber()
	return c
}

func (c *checker) refuse(path, format string, args ...any) {
	c.report(Finding{Path: path, Problem: fmt.Sprintf(format, args...), Refused: true})
}

func (c *checker) report(f Finding) {
	if len(c.findings) < maxFindings {
		c.findings = append(c.findings, f)
	}
}

// value checks the next value, which is at path. A nil schema allows everything.
func (c *checker) value(path string, s *schema) {
	token, _ := c.in.Token()
	var found string
	switch token := token.(type) {
	case json.Delim:
		found = map[json.Delim]string{'{': "object", '[': "array"}[token]
	case string:
		found = "string"
	case bool:
		found = "boolean"
	case nil:
		found = "null"
	case json.Number:
		found = "number"
		if s != nil && s.Type == "integer" {
			if found = "integer"; strings.ContainsAny(token.String(), ".eE") {
				found = "decimal number"
			}
		}
	}
	if s != nil && found != s.Type {
		c.refuse(path, "is %s where the interface has %s", withArticle(found), withArticle(s.Type))
		s = nil
	}
	switch found {
	case "object":
		c.object(path, s)
	case "array":
		c.array(path, s)
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

func (c *checker) object(path string, s *schema) {
	var seen []string
	for c.in.More() {
		token, _ := c.in.Token()
		name, _ := token.(string)
		below := strings.TrimPrefix(path+"."+name, ".")
		var member *schema
		if s != nil && s.Properties != nil {
			if member = s.Properties[name]; member == nil {
				c.report(Finding{Path: below, Problem: "is not a member of the interface", Unknown: name})
			}
		}
		seen = append(seen, name)
		c.value(below, member)
	}
	c.in.Token()
	if s == nil {
		return
	}
	for _, name := range s.Required {
		if !slices.Contains(seen, name) {
			c.refuse(strings.TrimPrefix(path+"."+name, "."), "is missing")
		}
	}
}

func (c *checker) array(path string, s *schema) {
	var element *schema
	if s != nil {
		element = s.Items
	}
	n := 0
	for ; c.in.More(); n++ {
		c.value(path+"["+strconv.Itoa(n)+"]", element)
	}
	c.in.Token()
	if s != nil && s.MinItems != nil && s.MaxItems != nil && (n < *s.MinItems || n > *s.MaxItems) {
		c.findings = append(c.findings, Finding{
			Path: path, Problem: fmt.Sprintf("has %d elements where the interface has %d to %d", n, *s.MinItems, *s.MaxItems),
			Refused: true, bounds: true,
		})
	}
}

// checkPost returns false and an error response unless r is a POST of JSON.
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
