// Package drift finds where a service differs from its contract, so that the client can log
// it once: new members, responses that need the slow decoder, and Deprecation and Sunset
// headers. It keeps names, and no values.
package drift

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// A Finding is one deviation. Both texts are safe to print.
type Finding struct{ Kind, Place string }

// A Report collects the findings of one response. Nil collects nothing.
type Report struct {
	Listening bool // the findings will be logged
	found     []Finding
}

// UnknownMember records a member outside the contract, in an object at place. For a known
// finding it costs one map lookup.
func (r *Report) UnknownMember(place string, name []byte) {
	if r != nil && r.Listening && !isKnown(place, harmless(name)) {
		r.add("unknown member", strings.TrimPrefix(place+"."+string(harmless(name)), "."))
	}
}

// FellBack records a response that needed the slow decoder.
func (r *Report) FellBack() {
	if r != nil && r.Listening {
		r.add("fallback decoder", "response body")
	}
}

func (r *Report) add(kind, place string) {
	if f := (Finding{kind, place}); !slices.Contains(r.found, f) && len(r.found) < maxMet {
		r.found = append(r.found, f)
	}
}

// News returns the findings that are new to this process, for responses to a route.
func (r *Report) News(route string, h http.Header) (news []Finding) {
	for _, name := range [...]string{"Deprecation", "Sunset"} {
		if len(h[name]) > 0 {
			r.add(strings.ToLower(name), "response header")
		}
	}
	memory.Lock()
	defer memory.Unlock()
	for _, f := range r.found {
		if met := (fact{route, f}); !memory.met[met] && len(memory.met) < maxMet {
			memory.met[met] = true
			memory.known[f.Place] = true
			news = append(news, f)
		}
	}
	r.found = nil
	return news
}

type fact struct {
	route string
	Finding
}

// memory holds the findings of this process. It is bounded, because the service chooses the
// names.
var memory = struct {
	sync.Mutex
	met   map[fact]bool
	known map[string]bool // the places of unknown members
}{met: map[fact]bool{}, known: map[string]bool{}}

const maxMet = 512

// Forget clears the memory, for tests.
func Forget() {
	memory.Lock()
	defer memory.Unlock()
	clear(memory.met)
	clear(memory.known)
}

// isKnown does not allocate, because a decoder calls it for each member.
func isKnown(place string, name []byte) bool {
	var path [128]byte
	text := append(path[:0], place...)
	if place != "" {
		text = append(text, '.')
	}
	text = append(text, name...)
	memory.Lock()
	defer memory.Unlock()
	return memory.known[string(text)] || len(memory.met) >= maxMet
}

// harmless returns a name that cannot be a number of anybody, and otherwise "*". A name is
// refused if it is long, has more than four digits, begins with a digit, or has two in a row.
func harmless(name []byte) []byte {
	digits, afterDigit := 0, true
	for _, c := range name {
		digit := '0' <= c && c <= '9'
		if digit {
			digits++
		}
		if digit && afterDigit || !digit && strings.IndexByte(letters, c) < 0 {
			return other
		}
		afterDigit = digit
	}
	if len(name) == 0 || len(name) > 40 || digits > 4 {
		return other
	}
	return name
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-"

var other = []byte("*")
