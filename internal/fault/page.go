package fault

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	// What may stand before the first element of a page: comments, declarations, space.
	prolog       = regexp.MustCompile(`(?is)^(?:\s+|<\?.*?\?>|<!--.*?-->|<!doctype\s[^>\[]*>)*`)
	pageDoctype  = regexp.MustCompile(`(?i)<!doctype\s+html\b`)
	tag          = regexp.MustCompile(`^<[a-zA-Z!?/]`)
	firstElement = regexp.MustCompile(`^<([a-zA-Z][\w:.-]*)[\s/>]`)
	unfinished   = regexp.MustCompile(`(?is)^<(?:!--.*|!doctype.*|\?.*|[!?]?[\w:.-]*)$`)
)

// pageElements are the elements that a page, or a fragment of one, begins with.
var pageElements = strings.Fields("html head title meta link base style script noscript body iframe frameset " +
	"h1 h2 h3 h4 h5 h6 p div span center table form a b i u em strong small big font br hr pre img ul ol dl li " +
	"main section article nav header footer blockquote button input label fieldset marquee tt code")

// isPage recognises an HTML page in place of data, such as a login or block page of a proxy.
// What the body begins with decides, under any label. The label decides only where the body
// does not show it: nothing of it arrived, it cannot be decoded, or it begins with an element
// that is neither of HTML nor certainly of something else.
func isPage(h http.Header, body []byte, err error) bool {
	begin := trimBlank(body)
	unseen := err != nil && len(begin) == 0 || isEncoded(h) && len(body) > 0
	page, _ := beginsPage(h, begin)
	return page || unseen && saysPage(h)
}

// beginsPage reports whether a text is the beginning of a page, and whether more of it can
// still decide otherwise. A beginning that is cut off before its first element may be a page.
func beginsPage(h http.Header, begin []byte) (page, decided bool) {
	if !bytes.HasPrefix(begin, []byte("<")) { // nearly always
		return false, true
	}
	begin = bytes.ReplaceAll(begin[:min(len(begin), MaxErrorBody)], []byte{0}, nil) // of UTF-16
	before := prolog.Find(begin)
	rest := begin[len(before):]
	if saysPage(h) && tag.Match(begin) || pageDoctype.Match(before) {
		return true, true
	}
	if element := firstElement.FindSubmatch(rest); element != nil {
		name := strings.ToLower(string(element[1]))
		return slices.Contains(pageElements, name) || strings.HasSuffix(name, ":html"), true
	}
	if len(rest) == 0 || unfinished.Match(rest) {
		return true, false
	}
	return len(before) > 0, true
}

// saysPage reports whether the label is that of a page.
func saysPage(h http.Header) bool {
	return mediaType(h) == "text/html" || mediaType(h) == "application/xhtml+xml"
}

func mediaType(h http.Header) string {
	label, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(label))
}

// trimBlank removes what may stand before a text: space, and byte order marks.
func trimBlank(body []byte) []byte {
	body = bytes.TrimLeftFunc(body, isBlank)
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} { // UTF-16
		if text, found := bytes.CutPrefix(body, []byte(mark)); found {
			return bytes.TrimLeftFunc(text, isBlank)
		}
	}
	return body
}

func isBlank(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' || r == 0 }
