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

	"github.com/carddata/carddata-go/internal/fault"
)

// maxSegment keeps the request line well under the 8 KiB that servers commonly accept, even
// when every byte is escaped.
const maxSegment = 1024

// parseBase returns the base address without a trailing slash. route is the path that calls
// add to it. Its errors do not quote the address, which may hold a credential by mistake.
//
// It refuses addresses that net/url accepts but that send requests to the wrong place or
// expose them. A query or a fragment swallows the path of the endpoint. A dot segment moves
// it. User information is sent as a credential. Without TLS, anybody on the way can read the
// cards.
func parseBase(base, route string, insecure bool) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fault.Invalid("the base URL cannot be parsed")
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/"), cmp.Or(
		fault.Require(base != "", "the base URL is empty"),
		fault.Require(u.Scheme == "https" || u.Scheme == "http", "the base URL must begin with https://"),
		fault.Require(u.Opaque == "" && u.Hostname() != "", "the base URL names no host"),
		fault.Require(u.User == nil, "the base URL holds user information; pass credentials as options"),
		fault.Require(u.RawQuery == "" && !u.ForceQuery, "the base URL holds a query"),
		fault.Require(!strings.Contains(base, "#"), "the base URL holds a fragment"),
		fault.Require(u.Scheme == "https" || insecure || isLoopback(u.Hostname()), "the base URL is not https; WithInsecureHTTP allows http beyond this machine"),
		fault.Require(!holdsDotSegment(u.Path), "the base URL holds a dot segment"),
		fault.Require(!endsIn(u.Path, route), "the base URL ends in the path of the endpoint, which the client adds: leave %s off", route),
	)
}

// endsIn compares the last segments. A segment in braces matches anything.
func endsIn(path, route string) bool {
	have, want := strings.Split(strings.Trim(path, "/"), "/"), strings.Split(strings.Trim(route, "/"), "/")
	return route != "" && len(have) >= len(want) && slices.EqualFunc(have[len(have)-len(want):], want, func(segment, pattern string) bool {
		return segment == pattern || strings.HasPrefix(pattern, "{")
	})
}

// holdsDotSegment also splits at backslashes, because some gateways read them as slashes.
func holdsDotSegment(path string) bool {
	segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	return slices.Contains(segments, ".") || slices.Contains(segments, "..")
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Segment escapes a path parameter so that it stays exactly one segment, or refuses it.
// Errors call it name.
func Segment(name, value string) (string, error) {
	refusal := cmp.Or(
		fault.Require(value != "", "is empty"),
		fault.Require(len(value) <= maxSegment, "is longer than %d bytes", maxSegment),
		fault.Require(utf8.ValidString(value), "is not valid UTF-8"),
		fault.Require(!strings.ContainsFunc(value, unicode.IsControl), "holds a control character"),
		// A slash is sent as %2F. A gateway that decodes it must not find "..", because the
		// path could then be another account's.
		fault.Require(!holdsDotSegment(value), "holds a dot segment"),
	)
	if refusal != nil {
		return "", fault.Invalid("the %s %v", name, refusal)
	}
	return url.PathEscape(value), nil
}

// redirectHosts are the other hosts that redirects may lead to, each with its port.
type redirectHosts []string

// hostName matches the output of hostPort. net/url accepts hosts that nothing can connect to,
// such as empty labels. It does check the address inside brackets.
var hostName = regexp.MustCompile(`^([\pL\pM\pN_-]+(\.[\pL\pM\pN_-]+)*|\[.+\]):[1-9]\d{0,4}$`)

// parseRedirectHosts reads "host", "*.domain", and either with a port.
func parseRedirectHosts(patterns []string) (redirectHosts, error) {
	var hosts redirectHosts
	for i, pattern := range patterns {
		rest := strings.TrimPrefix(pattern, "*.")
		u, err := url.Parse("https://" + rest)
		if err != nil || u.Host != rest || strings.HasSuffix(rest, ":") || !hostName.MatchString(hostPort(u)) ||
			len(u.Port()) == 5 && u.Port() > "65535" || rest != pattern && net.ParseIP(u.Hostname()) != nil {
			return nil, fault.Invalid("redirect host %d is no host name", i+1)
		}
		hosts = append(hosts, pattern[:len(pattern)-len(rest)]+hostPort(u))
	}
	return hosts, nil
}

// match accepts only https, because the content may hold card data.
func (hosts redirectHosts) match(u *url.URL) bool {
	return u.Scheme == "https" && hostName.MatchString(hostPort(u)) && slices.ContainsFunc(hosts, func(pattern string) bool {
		domain, below := strings.CutPrefix(pattern, "*")
		return hostPort(u) == pattern || below && strings.HasSuffix(hostPort(u), domain)
	})
}

func hostPort(u *url.URL) string {
	return strings.ToLower(strings.TrimSuffix(u.Host, ":"+u.Port())) + ":" + cmp.Or(u.Port(), "443")
}
