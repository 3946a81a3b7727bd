package updater

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// A version is what tells one content of a job's result from another. It is
// kept beside a partial file.
type version struct {
	ContentType  string `json:"content_type"`
	Length       int64  `json:"length"` // -1: not known
	ETag         string `json:"etag"`
	LastModified string `json:"last_modified"`
	// Validator is what If-Range may say; "" if nothing may be resumed.
	Validator string `json:"validator"`
}

func newVersion(r *transport.Result) version {
	return version{
		ContentType:  r.Header.Get("Content-Type"),
		Length:       r.Length,
		ETag:         r.Header.Get("ETag"),
		LastModified: r.Header.Get("Last-Modified"),
		Validator:    validator(r.Header),
	}
}

// validator is a strong ETag or a strong Last-Modified (RFC 9110, 8.8), unless
// the service declines ranges.
func validator(h http.Header) string {
	for _, unit := range h.Values("Accept-Ranges") {
		if strings.EqualFold(strings.TrimSpace(unit), "none") {
			return ""
		}
	}
	if etags := h.Values("ETag"); len(etags) == 1 && isStrongETag(etags[0]) {
		return etags[0]
	}
	modified, err := http.ParseTime(h.Get("Last-Modified"))
	if err != nil {
		return ""
	}
	// A second change within the second would have the same time.
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil || sent.Sub(modified) < time.Second {
		return ""
	}
	return h.Get("Last-Modified")
}

func isStrongETag(s string) bool {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return false
	}
	return strings.IndexFunc(s[1:len(s)-1], func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f }) < 0
}

// strongETag tells whether parts fetched at the same time are of one version
// for certain.
func (v version) strongETag() bool { return v.Validator != "" && v.Validator == v.ETag }

// contradicts tells whether an answer says that it is of another version.
func (v version) contradicts(h http.Header) bool {
	differs := func(name, ours string) bool {
		theirs := h.Get(name)
		return theirs != "" && theirs != ours
	}
	return differs("ETag", v.ETag) || differs("Last-Modified", v.LastModified)
}

func isMultipart(h http.Header) bool {
	mediaType, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return strings.HasPrefix(mediaType, "multipart/")
}

// parseContentRange reads "bytes FIRST-LAST/TOTAL". A total that the service
// leaves open is of no use, as the end could not be told.
func parseContentRange(h http.Header) (first, last, total int64, ok bool) {
	values := h.Values("Content-Range")
	if len(values) != 1 {
		return 0, 0, 0, false
	}
	unit, rest, _ := strings.Cut(values[0], " ")
	span, size, _ := strings.Cut(rest, "/")
	from, to, _ := strings.Cut(span, "-")
	numbers := [3]int64{}
	for i, text := range [...]string{from, to, size} {
		if text == "" || strings.Trim(text, "0123456789") != "" {
			return 0, 0, 0, false
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, 0, 0, false
		}
		numbers[i] = n
	}
	first, last, total = numbers[0], numbers[1], numbers[2]
	return first, last, total, strings.EqualFold(unit, "bytes") && first <= last && last < total
}
