package fault

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"unicode"
)

var (
	// page matches what only HTML begins with.
	page = regexp.MustCompile(`(?is)^(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)[\s/>]`)
	// markup matches what HTML or XML begins with.
	markup = regexp.MustCompile(`^<(!--|[?!]?[a-zA-Z][\w:.-]*([\s/>]|$))`)
)

// isPage recognises an HTML page in place of data, such as a login or block page of a proxy.
// What the body begins with decides. The label decides only where the body does not show it:
// nothing of it arrived, it cannot be decoded, or it is some other markup.
func isPage(h http.Header, body []byte, err error) bool {
	begin := bytes.TrimLeftFunc(body, isBlank)
	unseen := err != nil && len(begin) == 0 || isEncoded(h) && len(body) > 0
	return beginsPage(h, begin) || unseen && saysPage(h)
}

// beginsPage reports whether a text, without blanks before it, is the beginning of a page.
func beginsPage(h http.Header, begin []byte) bool {
	return page.Match(begin) || saysPage(h) && markup.Match(begin)
}

// saysPage reports whether the label is that of a page.
func saysPage(h http.Header) bool {
	return mediaType(h) == "text/html" || mediaType(h) == "application/xhtml+xml"
}

func mediaType(h http.Header) string {
	label, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(label))
}

// isBlank matches what may stand before a text: space, and a byte order mark.
func isBlank(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }
