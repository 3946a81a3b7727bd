package transport

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSegment keeps a request line well under the 8 KiB that servers commonly
// accept, even when every byte is escaped.
const maxSegment = 1024

// parseBase returns the base address without a trailing slash. Its errors do
// not quote the address, which may hold a credential by mistake. route is what the
// calls of the client add to it.
//
// Much is refused that net/url accepts, as each of these would send requests to where
// the caller does not expect them: a query or a fragment would swallow the path of the
// endpoint, a dot segment would move it, and user information would be sent as a
// credential to whichever host it is. Without TLS anybody on the way reads cards.
func parseBase(base, route string, insecure bool) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", Invalid("the base URL cannot be parsed")
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/"), cmp.Or(
		require(base != "", "the base URL is empty"),
		require(u.Scheme == "https" || u.Scheme == "http", "the base URL must begin with https://"),
		require(u.Opaque == "" && u.Hostname() != "", "the base URL names no host"),
		require(u.User == nil, "the base URL holds user information; pass credentials as options"),
		require(u.RawQuery == "" && !u.ForceQuery, "the base URL holds a query"),
		require(!strings.Contains(base, "#"), "the base URL holds a fragment"),
		require(u.Scheme == "https" || insecure || isLoopback(u.Hostname()), "the base URL is not https; WithInsecureHTTP allows http beyond this machine"),
		require(!holdsDotSegment(u.Path), "the base URL holds a dot segment"),
		require(!endsIn(u.Path, route), "the base URL ends in the path of the endpoint, which the client adds: leave %s off", route),
	)
}

// require is nil if ok, and else a refusal, in words that do not quote the argument.
func require(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return Invalid(format, args...)
}

// endsIn compares the last segments, of which those in braces match anything.
func endsIn(path, route string) bool {
	have, want := strings.Split(strings.Trim(path, "/"), "/"), strings.Split(strings.Trim(route, "/"), "/")
	return route != "" && len(have) >= len(want) && slices.EqualFunc(have[len(have)-len(want):], want, func(segment, pattern string) bool {
		return segment == pattern || strings.HasPrefix(pattern, "{")
	})
}

// holdsDotSegment takes a backslash for a slash, as some gateways do.
func holdsDotSegment(path string) bool {
	segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	return slices.Contains(segments, ".") || slices.Contains(segments, "..")
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Segment escapes a path parameter so that it travels as exactly one segment,
// or refuses what cannot travel as one. name is how the error calls it.
func Segment(name, value string) (string, error) {
	refusal := cmp.Or(
		require(value != "", "is empty"),
		require(len(value) <= maxSegment, "is longer than %d bytes", maxSegment),
		require(utf8.ValidString(value), "is not valid UTF-8"),
		require(!strings.ContainsFunc(value, unicode.IsControl), "holds a control character"),
		// A slash travels as %2F, but a gateway that decodes it must not find a way up: the
		// path it would find is another account's.
		require(!holdsDotSegment(value), "holds a dot segment"),
	)
	if refusal != nil {
		return "", Invalid("the %s %v", name, refusal)
	}
	return url.PathEscape(value), nil
}

// redirectHosts are where redirects may lead beyond the service's own origin, each
// with its port.
type redirectHosts []string

// hostName is a host with its port as hostPort writes it. net/url lets pass what nothing
// can be connected to, such as empty labels; of what is in brackets it makes sure.
var hostName = regexp.MustCompile(`^([\pL\pM\pN_-]+(\.[\pL\pM\pN_-]+)*|\[.+\]):[1-9]\d{0,4}$`)

// parseRedirectHosts reads "host", "*.domain", and either with a port.
func parseRedirectHosts(patterns []string) (redirectHosts, error) {
	var hosts redirectHosts
	for i, pattern := range patterns {
		rest := strings.TrimPrefix(pattern, "*.")
		u, err := url.Parse("https://" + rest)
		if err != nil || u.Host != rest || strings.HasSuffix(rest, ":") || !hostName.MatchString(hostPort(u)) ||
			len(u.Port()) == 5 && u.Port() > "65535" || rest != pattern && net.ParseIP(u.Hostname()) != nil {
			return nil, Invalid("redirect host %d is no host name", i+1)
		}
		hosts = append(hosts, pattern[:len(pattern)-len(rest)]+hostPort(u))
	}
	return hosts, nil
}

// match follows https alone: what is redirected to may hold card data.
func (hosts redirectHosts) match(u *url.URL) bool {
	return u.Scheme == "https" && hostName.MatchString(hostPort(u)) && slices.ContainsFunc(hosts, func(pattern string) bool {
		domain, below := strings.CutPrefix(pattern, "*")
		return hostPort(u) == pattern || below && strings.HasSuffix(hostPort(u), domain)
	})
}

func hostPort(u *url.URL) string {
	return strings.ToLower(strings.TrimSuffix(u.Host, ":"+u.Port())) + ":" + cmp.Or(u.Port(), "443")
}
