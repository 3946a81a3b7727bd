package transport

import (
	"crypto/sha256"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSegment keeps a request line well under the 8 KiB that servers commonly
// accept, even when every byte is escaped.
const maxSegment = 1024

// parseBase returns the base address without a trailing slash. Its errors do
// not quote the address, which may hold a credential by mistake.
func parseBase(base string, insecure bool) (string, error) {
	u, err := url.Parse(base)
	switch {
	case base == "":
		return "", Invalid("the base URL is empty")
	case err != nil:
		return "", Invalid("the base URL cannot be parsed")
	case u.Scheme != "https" && u.Scheme != "http":
		return "", Invalid("the base URL must begin with https://")
	case u.Opaque != "" || u.Hostname() == "":
		return "", Invalid("the base URL names no host")
	case u.User != nil:
		return "", Invalid("the base URL holds user information; pass credentials as options")
	case u.RawQuery != "" || u.ForceQuery:
		return "", Invalid("the base URL holds a query")
	case strings.Contains(base, "#"):
		return "", Invalid("the base URL holds a fragment")
	case u.Scheme == "http" && !insecure && !isLoopback(u.Hostname()):
		return "", Invalid("the base URL is not https; WithInsecureHTTP allows http beyond this machine")
	}
	for element := range strings.SplitSeq(u.Path, "/") {
		if element == "." || element == ".." {
			return "", Invalid("the base URL holds a dot segment")
		}
	}
	return u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/"), nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Segment escapes a path parameter so that it travels as exactly one segment,
// or refuses what cannot travel as one. name is how the error calls it.
func Segment(name, value string) (string, error) {
	switch {
	case value == "":
		return "", Invalid("the %s is empty", name)
	case len(value) > maxSegment:
		return "", Invalid("the %s is longer than %d bytes", name, maxSegment)
	case !utf8.ValidString(value):
		return "", Invalid("the %s is not valid UTF-8", name)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", Invalid("the %s holds a control character", name)
	}
	// A slash travels as %2F, but a gateway that decodes it must not find a way up.
	for element := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '/' || r == '\\' }) {
		if element == "." || element == ".." {
			return "", Invalid("the %s holds a dot segment", name)
		}
	}
	return url.PathEscape(value), nil
}

// Fingerprint tells the addresses of a client's paths apart, also those of other
// clients, without showing them.
func (c *Client) Fingerprint(path string) [sha256.Size]byte {
	return sha256.Sum256([]byte(c.address(path)))
}
