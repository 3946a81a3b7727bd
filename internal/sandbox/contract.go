package sandbox

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
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
}

func (f Finding) String() string {
	if f.Path == "" {
		return "the body " + f.Problem
	}
	return f.Path + " " + f.Problem
}

// maxFindings bounds the findings about one body.
const maxFindings = 20

// CheckBody compares the body of a request with the interface. What the body is refused for
// comes first. CheckBody does not look for unknown members inside of unknown ones.
func CheckBody(area Area, body []byte) []Finding {
	s := requestSchema(area)
	if s == nil {
		return nil
	}
	_, findings := check(s, body)
	return findings
}

// check returns the decoded body too.
func check(s *schema, body []byte) (value any, findings []Finding) {
	if !json.Valid(body) {
		return nil, []Finding{{Problem: "is not JSON", Refused: true}}
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	in.Decode(&value)
	var c checker
	c.value("", s, value)
	findings = slices.Concat(c.refused, c.unknown)
	return value, findings[:min(len(findings), maxFindings)]
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

// A checker walks over a decoded body.
type checker struct{ refused, unknown []Finding }

func (c *checker) refuse(path, format string, args ...any) {
	if len(c.refused) < maxFindings {
		c.refused = append(c.refused, Finding{Path: path, Problem: fmt.Sprintf(format, args...), Refused: true})
	}
}

func (c *checker) value(path string, s *schema, v any) {
	if found := typeOf(v, s.Type); found != s.Type {
		c.refuse(path, "is %s where the interface has %s", withArticle(found), withArticle(s.Type))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		c.object(path, s, v)
	case []any:
		if s.MinItems != nil && (len(v) < *s.MinItems || len(v) > *s.MaxItems) {
			c.refuse(path, "has %d elements where the interface has %d to %d", len(v), *s.MinItems, *s.MaxItems)
		}
		for i, element := range v {
			c.value(path+"["+strconv.Itoa(i)+"]", s.Items, element)
		}
	}
}

func (c *checker) object(path string, s *schema, members map[string]any) {
	if s.Properties == nil {
		return // the interface leaves its members open
	}
	below := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if member := s.Properties[name]; member != nil {
			c.value(below(name), member, members[name])
		} else if len(c.unknown) < maxFindings {
			c.unknown = append(c.unknown, Finding{Path: below(name), Problem: "is not a member of the interface", Unknown: name})
		}
	}
	for _, name := range s.Required {
		if _, has := members[name]; !has {
			c.refuse(below(name), "is missing")
		}
	}
}

// typeOf names the type of a value that should have the type want.
func typeOf(v any, want string) string {
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
		switch {
		case want != "integer":
			return "number"
		case strings.ContainsAny(v.String(), ".eE"):
			return "decimal number"
		}
		return "integer"
	}
	return "null"
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

// readPost returns the body of a POST of JSON, or an error response.
func readPost(area Area, r *http.Request, body []byte) (members map[string]any, refusal *response) {
	if r.Method != http.MethodPost {
		return nil, new(methodNotAllowed(http.MethodPost))
	}
	if contentType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); contentType != "application/json" {
		return nil, new(failure(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Type must be application/json"))
	}
	value, findings := check(requestSchema(area), body)
	if len(findings) > 0 && findings[0].Refused {
		first := findings[0]
		return nil, new(failed(http.StatusBadRequest, apiError{"bad_request", first.String(), map[string]any{"path": first.Path}}))
	}
	return value.(map[string]any), nil
}

func authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return scheme == "Bearer" && strings.TrimSpace(token) != ""
}
