package matrix

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit"
)

const emptyAnswer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\nConnection: close\r\n\r\n{\"cards\":[]}"

// A wireHead is a request as it is on the wire.
type wireHead struct {
	path  string
	lines map[string][]string // by lower-case name
}

func parseWireHead(t testing.TB, text string) wireHead {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\r\n\r\n"), "\r\n")
	request := strings.Split(lines[0], " ")
	if len(request) != 3 {
		t.Fatalf("the request line is %q", lines[0])
	}
	h := wireHead{request[1], map[string][]string{}}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			t.Errorf("the header line %q has no value", line)
		}
		h.lines[strings.ToLower(name)] = append(h.lines[strings.ToLower(name)], value)
	}
	return h
}

// check compares a request with one that carries harmless values: the same
// headers, once each, and a path of as many segments.
func (h wireHead) check(t testing.TB, name string, plain wireHead) {
	t.Helper()
	for header, values := range h.lines {
		if len(values) != 1 || plain.lines[header] == nil && header != "x-fuzz" {
			t.Errorf("%s: header %s arrived as %q", name, header, values)
		}
	}
	if strings.Count(h.path, "/") != strings.Count(plain.path, "/") || strings.ContainsAny(h.path, "?#") {
		t.Errorf("%s: the path %q has other segments than %q", name, h.path, plain.path)
	}
}

// A wireSlot is a place in a request that a caller's value goes to.
type wireSlot struct {
	name  string
	put   func(*operations.Arguments, string) []bins.Option
	found func(h wireHead, value string) bool // the value, byte for byte
	skip  []string                            // operations that do not carry it
}

func onHeader(name, prefix, suffix string) func(wireHead, string) bool {
	return func(h wireHead, value string) bool {
		return len(h.lines[name]) == 1 && strings.HasPrefix(h.lines[name][0], prefix+value+suffix) &&
			(suffix != "" || h.lines[name][0] == prefix+value)
	}
}

func onSegment(n int) func(wireHead, string) bool {
	return func(h wireHead, value string) bool {
		segments := strings.Split(h.path, "/")
		got, err := url.PathUnescape(segments[min(n, len(segments)-1)])
		return err == nil && got == value
	}
}

var wireSlots = []wireSlot{
	{"header", func(_ *operations.Arguments, v string) []bins.Option {
		return []bins.Option{bins.WithHeader("X-Fuzz", v)}
	}, onHeader("x-fuzz", "", ""), nil},
	{"user agent", func(_ *operations.Arguments, v string) []bins.Option { return []bins.Option{bins.WithUserAgent(v)} }, func(h wireHead, v string) bool {
		if v != "" {
			v += " "
		}
		return onHeader("user-agent", "", "carddata-go/")(h, v)
	}, nil},
	{"token", func(i *operations.Arguments, v string) []bins.Option {
		i.Key, i.Token = bins.StaticToken(v), bins.StaticToken(v)
		return nil
	}, onHeader("authorization", "Bearer ", ""), []string{"refund"}},
	{"token source", func(i *operations.Arguments, v string) []bins.Option {
		source := bins.TokenFunc(func(context.Context) (string, error) { return v, nil })
		i.Key, i.Token = source, source
		return nil
	}, onHeader("authorization", "Bearer ", ""), []string{"refund"}},
	{"merchant", func(i *operations.Arguments, v string) []bins.Option { i.Merchant = v; return nil }, onHeader("x-merchant-id", "", ""), []string{"lookup", "refund"}},
	{"account", func(i *operations.Arguments, v string) []bins.Option { i.Account = v; return nil }, onSegment(2), []string{"lookup", "download"}},
	{"job", func(i *operations.Arguments, v string) []bins.Option { i.Job = v; return nil }, onSegment(4), []string{"lookup", "refund"}},
}

// FuzzHeaderValue puts a value into every place that takes one. The library
// either refuses it before anything is sent, or sends it as exactly what it is.
func FuzzHeaderValue(f *testing.F) {
	for _, seed := range []string{
		"", "plain", " begin", "end ", "\tbegin", "end\t", "in side", "a\tb", "a,b", "a\r\nX-Evil: 1", "a\nb", "a\rb", "nul\x00", "del\x7f",
		"Ärger", "\xff", "4111111111111111", "..", ".", "a/b", "a/../b", "%2e%2e", "%2F", "a?b", "a#b", "a;b", "a\\b", "a:b@c", "[::1]", "a=b&c",
		"\u2028", "\u0085", strings.Repeat("x", 200), strings.Repeat("/", 40), strings.Repeat("é", 500), strings.Repeat("t", 9000),
	} {
		f.Add(seed)
	}
	server := testkit.AnswerWire(f, emptyAnswer)
	send := func(t testing.TB, name string, args operations.Arguments, skip []string, use func(operation string, h wireHead), opts ...bins.Option) {
		list, err := operations.New(server.Base, args, opts...)
		if err != nil {
			if !errors.Is(err, bins.ErrInvalidArgument) {
				t.Errorf("%s: %v", name, err)
			}
			return
		}
		for _, e := range list {
			if slices.Contains(skip, e.Name) {
				continue
			}
			_, err := e.Call(t.Context())
			heads := server.Received()
			switch {
			case err == nil && len(heads) == 1:
				use(e.Name, parseWireHead(t, heads[0]))
			case len(heads) != 0, !errors.Is(err, bins.ErrInvalidArgument) && !errors.Is(err, bins.ErrCredential):
				t.Errorf("%s of %s: %q arrived, with %v", name, e.Name, heads, err)
			}
		}
	}
	plain := map[string]wireHead{}
	send(f, "plain", operations.Plain(), nil, func(operation string, h wireHead) { plain[operation] = h })
	f.Fuzz(func(t *testing.T, value string) {
		for _, s := range wireSlots {
			arguments := operations.Plain()
			opts := s.put(&arguments, value)
			send(t, s.name, arguments, s.skip, func(operation string, h wireHead) {
				h.check(t, s.name, plain[operation])
				if !s.found(h, value) {
					t.Errorf("%s of %s: %q arrived as %s %q", s.name, operation, value, h.path, h.lines)
				}
			}, opts...)
		}
	})
}
