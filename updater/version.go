package updater

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// A version identifies one content of a job's result. It is kept beside a partial file.
type version struct {
	ContentType  string `json:"content_type"`
	Length       int64  `json:"length"` // -1: not known
	ETag         string `json:"etag"`
	LastModified string `json:"last_modified"`
	// StrongDate is LastModified if a later content has another; else "".
	StrongDate string `json:"strong_date"`
	// Validator is the value for If-Range; "" if the content cannot be resumed.
	Validator string `json:"validator"`
}

func newVersion(r *transport.Result) version {
	return version{
		ContentType:  r.Header.Get("Content-Type"),
		Length:       r.Length,
		ETag:         r.Header.Get("ETag"),
		LastModified: r.Header.Get("Last-Modified"),
		StrongDate:   strongDate(r.Header),
		Validator:    validator(r.Header),
	}
}

// condition is the header that requests the content only if it differs from this version. A
// weak ETag is enough, because it marks equivalent contents.
func (v version) condition() (name, value string) {
	if v.ETag != "" {
		return "If-None-Match", v.ETag
	}
	return "If-Modified-Since", v.StrongDate
}

var strongETag = regexp.MustCompile(`^"[^\x00-\x20"\x7f]*"$`)

// validator is a strong ETag or a strong date. There is none if the service declines ranges.
func validator(h http.Header) string {
	for _, unit := range h.Values("Accept-Ranges") {
		if strings.EqualFold(strings.TrimSpace(unit), "none") {
			return ""
		}
	}
	if etags := h.Values("ETag"); len(etags) == 1 && strongETag.MatchString(etags[0]) {
		return etags[0]
	}
	return strongDate(h)
}

// clockError is how far the service's clock may be off, if it does not show its time.
const clockError = time.Minute

// strongDate is the Last-Modified, unless a second change within the same second could have the same
// (RFC 9110, 8.8). A response without a Date was sent when it arrived (6.6.1).
func strongDate(h http.Header) string {
	modified, err := http.ParseTime(h.Get("Last-Modified"))
	if err != nil {
		return ""
	}
	sent := time.Now().Add(-clockError)
	if date := h.Get("Date"); date != "" {
		if sent, err = http.ParseTime(date); err != nil {
			return ""
		}
	}
	if sent.Sub(modified) < time.Second {
		return ""
	}
	return h.Get("Last-Modified")
}

// isRepeatedBy reports whether a part has the validator that it was asked by.
func (v version) isRepeatedBy(h http.Header) bool {
	return v.Validator != "" && (h.Get("ETag") == v.Validator || h.Get("Last-Modified") == v.Validator)
}

// contradicts reports whether a response belongs to another version.
func (v version) contradicts(h http.Header) bool {
	differs := func(name, ours string) bool {
		theirs := h.Get(name)
		return theirs != "" && theirs != ours
	}
	return differs("ETag", v.ETag) || differs("Last-Modified", v.LastModified)
}

var contentRange = regexp.MustCompile(`^(?i:bytes) \d+-\d+/(\d+|\*)$`)

// parseContentRange reads "bytes FIRST-LAST/TOTAL". The total is -1 if it is "*".
func parseContentRange(h http.Header) (first, last, total int64, ok bool) {
	value := strings.Join(h.Values("Content-Range"), ",")
	if !contentRange.MatchString(value) {
		return 0, 0, 0, false
	}
	value, open := strings.CutSuffix(value[len("bytes "):], "/*")
	if open {
		value += "/-1"
	}
	_, err := fmt.Sscanf(value, "%d-%d/%d", &first, &last, &total)
	return first, last, total, err == nil && first <= last && (open || last < total)
}
