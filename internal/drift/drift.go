// Package drift finds where a service differs from its contract, so that the client can log
// it once: new members, members of another type, and Deprecation and Sunset headers. It keeps
// names and types, and no values.
package drift

import (
	"net/http"
	"strings"
	"sync"
)

// A Finding is one deviation. Both texts are safe to print.
type Finding struct{ Kind, Place string }

// A Report collects the findings of one response. Nil collects nothing.
type Report struct {
	Listening bool // the findings will be logged
	found     map[Finding]bool
}

// UnknownMember records a member outside the contract, in an object at place.
func (r *Report) UnknownMember(place string, name []byte) {
	if r != nil && r.Listening {
		r.add("unknown member", strings.TrimPrefix(place+"."+string(harmless(name)), "."))
	}
}

// Add records a deviation. Both texts must be the caller's own words, and none of the service.
func (r *Report) Add(kind, place string) {
	if r != nil && r.Listening {
		r.add(kind, place)
	}
}

func (r *Report) add(kind, place string) {
	if r.found == nil {
		r.found = map[Finding]bool{}
	}
	if len(r.found) < maxMet {
		r.found[Finding{kind, place}] = true
	}
}

// News returns the findings that are new to this process.
func (r *Report) News(h http.Header) (news []Finding) {
	for _, name := range [...]string{"Deprecation", "Sunset"} {
		if len(h[name]) > 0 {
			r.add(strings.ToLower(name), "response header")
		}
	}
	memory.Lock()
	defer memory.Unlock()
	for f := range r.found {
		if !memory.met[f] && len(memory.met) < maxMet {
			memory.met[f] = true
			news = append(news, f)
		}
	}
	r.found = nil
	return news
}

// memory holds the findings of this process. It is bounded, because the service chooses the
// names.
var memory = struct {
	sync.Mutex
	met map[Finding]bool
}{met: map[Finding]bool{}}

const maxMet = 512

// Forget clears the memory, for tests.
func Forget() {
	memory.Lock()
	defer memory.Unlock()
	clear(memory.met)
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
