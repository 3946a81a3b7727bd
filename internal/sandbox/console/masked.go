package console

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/mask"
)

const maxLine = 200

// text is for what may be seen: card numbers masked, and not endless.
func text(s string) string {
	s = mask.Text(s)
	if len(s) <= maxLine {
		return s
	}
	// After the mask, which must see a number whole.
	end := maxLine
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

var documented = strings.Fields(`GET POST PUT PATCH DELETE HEAD OPTIONS
	bins multiple v1 refunds updater inquiries jobs download`)

// word shows the words of the interface. Others may be data.
func word(s string) string {
	if slices.Contains(documented, s) {
		return s
	}
	return hides
}

// maskPath keeps the identifiers of the documented paths only.
func maskPath(path []string) string {
	id := -1
	switch {
	case len(path) == 3 && path[0] == "v1" && path[2] == "refunds":
		id = 1
	case len(path) == 5 && path[0] == "updater" && path[2] == "jobs" && path[4] == "download":
		id = 3
	}
	masked := make([]string, len(path))
	for i, segment := range path {
		switch {
		case i == id:
			masked[i] = text(segment)
		case segment != "":
			masked[i] = word(segment)
		}
	}
	return "/" + strings.Join(masked, "/")
}

var shownHeaders = []string{
	"Accept", "Accept-Ranges", "Allow", "Content-Length", "Content-Range", "Content-Type", "Etag", "If-Range", "Range", "Retry-After", "User-Agent",
}

// maskHeader shows what the service reads, and of credentials that they are
// there.
func maskHeader(h http.Header) map[string]string {
	masked := make(map[string]string)
	for _, name := range shownHeaders {
		if value := h.Get(name); value != "" {
			masked[name] = text(value)
		}
	}
	if value := h.Get("Authorization"); value != "" {
		masked["Authorization"] = hides
		if strings.HasPrefix(value, "Bearer ") {
			masked["Authorization"] = "Bearer " + hides
		}
	}
	if h.Get("X-Merchant-Id") != "" {
		masked["X-Merchant-Id"] = hides
	}
	return masked
}

var edges = regexp.MustCompile(`^[0-9 -]+|[0-9 -]+$`)

// maskPart is for a part of a text, whose edges may be parts of card numbers.
func maskPart(s string) string {
	return mask.Text(edges.ReplaceAllString(s, hides))
}
