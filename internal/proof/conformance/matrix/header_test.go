package matrix

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
)

const emptyAnswer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\nConnection: close\r\n\r\n{\"cards\":[]}"

// checkShape compares a request with one that carries harmless values: the same
// headers, once each, and a path of as many segments.
func checkShape(t testing.TB, name string, r, plain *http.Request) {
	t.Helper()
	for header, values := range r.Header {
		if len(values) != 1 || plain.Header[header] == nil && header != "X-Fuzz" {
			t.Errorf("%s: header %s arrived as %q", name, header, values)
		}
	}
	if strings.Count(r.RequestURI, "/") != strings.Count(plain.RequestURI, "/") || strings.ContainsAny(r.RequestURI, "?#") {
		t.Errorf("%s: the path %q has other segments than %q", name, r.RequestURI, plain.RequestURI)
	}
}

// A wireSlot is a place in a request that a caller's value goes to.
type wireSlot struct {
	name  string
	put   func(*operations.Arguments, string) []options.Option
	found func(r *http.Request, value string) bool // the value, byte for byte
	skip  []string                                 // operations that do not carry it
}

func onHeader(name, prefix, suffix string) func(*http.Request, string) bool {
	return func(r *http.Request, value string) bool {
		got := r.Header.Get(name)
		return got == prefix+value || suffix != "" && strings.HasPrefix(got, prefix+value+suffix)
	}
}

func onSegment(n int) func(*http.Request, string) bool {
	return func(r *http.Request, value string) bool {
		segments := strings.Split(r.RequestURI, "/")
		got, err := url.PathUnescape(segments[min(n, len(segments)-1)])
		return err == nil && got == value
	}
}

var wireSlots = []wireSlot{
	{"header", func(_ *operations.Arguments, v string) []options.Option {
		return []options.Option{options.WithHeader("X-Fuzz", v)}
	}, onHeader("x-fuzz", "", ""), nil},
	{"user agent", func(_ *operations.Arguments, v string) []options.Option {
		return []options.Option{options.WithUserAgent(v)}
	}, func(r *http.Request, v string) bool {
		if v != "" {
			v += " "
		}
		return onHeader("user-agent", "", "carddata-go/")(r, v)
	}, nil},
	{"token", func(i *operations.Arguments, v string) []options.Option {
		i.Key, i.Token = bins.StaticToken(v), bins.StaticToken(v)
		return nil
	}, onHeader("authorization", "Bearer ", ""), []string{"refund"}},
	{"token source", func(i *operations.Arguments, v string) []options.Option {
		source := bins.TokenFunc(func(context.Context) (string, error) { return v, nil })
		i.Key, i.Token = source, source
		return nil
	}, onHeader("authorization", "Bearer ", ""), []string{"refund"}},
	{"merchant", func(i *operations.Arguments, v string) []options.Option { i.Merchant = v; return nil }, onHeader("x-merchant-id", "", ""), []string{"lookup", "refund"}},
	{"account", func(i *operations.Arguments, v string) []options.Option { i.Account = v; return nil }, onSegment(2), []string{"lookup", "download"}},
	{"job", func(i *operations.Arguments, v string) []options.Option { i.Job = v; return nil }, onSegment(4), []string{"lookup", "refund"}},
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
	send := func(t testing.TB, name string, args operations.Arguments, skip []string, use func(operation string, r *http.Request), opts ...options.Option) {
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
				r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(heads[0])))
				if err != nil {
					t.Fatal(err)
				}
				use(e.Name, r)
			case len(heads) != 0, !errors.Is(err, bins.ErrInvalidArgument) && !errors.Is(err, bins.ErrCredential):
				t.Errorf("%s of %s: %q arrived, with %v", name, e.Name, heads, err)
			}
		}
	}
	plain := map[string]*http.Request{}
	send(f, "plain", operations.Plain(), nil, func(operation string, r *http.Request) { plain[operation] = r })
	f.Fuzz(func(t *testing.T, value string) {
		for _, s := range wireSlots {
			arguments := operations.Plain()
			opts := s.put(&arguments, value)
			send(t, s.name, arguments, s.skip, func(operation string, r *http.Request) {
				checkShape(t, s.name, r, plain[operation])
				if !s.found(r, value) {
					t.Errorf("%s of %s: %q arrived as %s %q", s.name, operation, value, r.RequestURI, r.Header)
				}
			}, opts...)
		}
	})
}
