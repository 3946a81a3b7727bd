package updater

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
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
	// ContentEncoding is "" for content as it is.
	ContentEncoding string `json:"content_encoding"`
	// Digests are those of the whole content, as the service sent them.
	Digests digests `json:"digests"`
	// Validator is what If-Range may say; "" if nothing may be resumed.
	Validator string `json:"validator"`
	// StrongDate is what If-Modified-Since may say; "" if it may say nothing.
	StrongDate string `json:"strong_date"`
}

func newVersion(r *transport.Result) version {
	return version{
		ContentType:  r.Header.Get("Content-Type"),
		Length:       r.Length,
		ETag:         r.Header.Get("ETag"),
		LastModified: r.Header.Get("Last-Modified"),
		Validator:    validator(r.Header),
		StrongDate:   strongDate(r.Header),

		ContentEncoding: contentEncoding(r.Header),
		Digests:         parseDigests(r.Header, "Repr-Digest"),
	}
}

func contentEncoding(h http.Header) string {
	encoding := h.Get("Content-Encoding")
	if strings.EqualFold(encoding, "identity") {
		return ""
	}
	return encoding
}

// isSame tells whether two complete responses are of the same version, as far as
// they say.
func (v version) isSame(o version) bool {
	return v.ETag == o.ETag && v.LastModified == o.LastModified && (v.Length == o.Length || v.Length < 0 || o.Length < 0)
}

// condition is the header that asks for a content only if it is not this one. A
// weak ETag will do, as the service calls the contents equivalent.
func (v version) condition() (name, value string) {
	if v.ETag != "" {
		return "If-None-Match", v.ETag
	}
	return "If-Modified-Since", v.StrongDate
}

var strongETag = regexp.MustCompile(`^"[^\x00-\x20"\x7f]*"$`)

// validator is a strong ETag or a strong Last-Modified (RFC 9110, 8.8), unless
// the service declines ranges.
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

// strongDate is the Last-Modified, unless a second change within that second would
// have the same.
func strongDate(h http.Header) string {
	modified, err := http.ParseTime(h.Get("Last-Modified"))
	sent, failed := http.ParseTime(h.Get("Date"))
	if err != nil || failed != nil || sent.Sub(modified) < time.Second {
		return ""
	}
	return h.Get("Last-Modified")
}

// contradicts tells whether a response says that it is of another version.
func (v version) contradicts(h http.Header) bool {
	differs := func(name, ours string) bool {
		theirs := h.Get(name)
		return theirs != "" && theirs != ours
	}
	return differs("ETag", v.ETag) || differs("Last-Modified", v.LastModified) || differs("Content-Encoding", v.ContentEncoding) ||
		v.Digests.differ(parseDigests(h, "Repr-Digest"))
}

func isMultipart(h http.Header) bool {
	mediaType, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return strings.HasPrefix(mediaType, "multipart/")
}

var contentRange = regexp.MustCompile(`^(?i:bytes) \d+-\d+/\d+$`)

// parseContentRange reads "bytes FIRST-LAST/TOTAL". A total that the service
// leaves open is of no use, as the end could not be told.
func parseContentRange(h http.Header) (first, last, total int64, ok bool) {
	value := strings.Join(h.Values("Content-Range"), ",")
	if !contentRange.MatchString(value) {
		return 0, 0, 0, false
	}
	_, err := fmt.Sscanf(value[len("bytes "):], "%d-%d/%d", &first, &last, &total)
	return first, last, total, err == nil && first <= last && last < total
}

// metadata says what the bytes of a partial file are, or of a complete one.
type metadata struct {
	Format   int     `json:"format"`
	Resource string  `json:"resource"` // of what; a hash
	Boot     string  `json:"boot"`     // the machine's run that wrote them
	Version  version `json:"version"`

	// Of a complete file.
	Size     int64  `json:"size,omitempty"`
	Modified int64  `json:"modified,omitempty"` // in nanoseconds since 1970
	SHA256   string `json:"sha_256,omitempty"`
	Verified bool   `json:"verified,omitempty"`
}

const (
	// metadataFormat is raised when older metadata is not to be built upon. The files of
	// formats below 2 may have gaps, and those below 3 call their digests otherwise.
	metadataFormat = 3
	maxMetadata    = 64 << 10
)

func (p *partial) metadataName() string { return p.name + ".json" }

func (p *partial) newMetadataName() string { return p.metadataName() + ".new" }

// recordName is that of the metadata of the complete file.
func (p *partial) recordName() string { return "." + p.base + ".json" }

// resumePoint returns the version of the content whose beginning an earlier call
// left, and how much of it can be built upon. The last byte is asked for again, so
// that also a complete content is found to be current.
func (p *partial) resumePoint(resource string) (version, int64) {
	info, err := p.file.Stat()
	if err != nil || info.Size() <= 1 {
		return version{}, 0
	}
	m, ok := p.readMetadata(p.metadataName(), resource)
	// After a crash of the machine the file may have any content.
	if !ok || m.Boot != bootID() || m.Version.Validator == "" || m.Version.Length >= 0 && info.Size() > m.Version.Length {
		return version{}, 0
	}
	return m.Version, info.Size() - 1
}

// current returns the metadata of the file at the path, if the service can be asked
// whether it is current. Whoever wrote to the file since changed its size or time. What
// others can read by now is not called current, so that a private file replaces it.
func (p *partial) current(resource string) metadata {
	info, err := p.root.Lstat(p.base)
	if err != nil || !info.Mode().IsRegular() || !isPrivate(info.Mode()) {
		return metadata{}
	}
	m, ok := p.readMetadata(p.recordName(), resource)
	if !ok || m.Size != info.Size() || m.Modified != info.ModTime().UnixNano() {
		return metadata{}
	}
	return m
}

func (p *partial) readMetadata(name, resource string) (m metadata, ok bool) {
	file, err := p.root.OpenFile(name, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return m, false
	}
	defer file.Close()
	if !p.isNamed(file) {
		return m, false
	}
	data, err := io.ReadAll(io.LimitReader(file, maxMetadata))
	ok = err == nil && json.Unmarshal(data, &m) == nil
	return m, ok && m.Format == metadataFormat && m.Resource == resource
}

// writeMetadata replaces metadata as a whole.
func (p *partial) writeMetadata(name string, m metadata) error {
	m.Format, m.Boot = metadataFormat, bootID()
	data, _ := json.Marshal(m) // which has nothing that could not be encoded
	unfinished := p.newMetadataName()
	p.root.Remove(unfinished)
	file, err := p.root.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = file.Chmod(0o600) // what the umask took away
	_, failed := file.Write(data)
	if err = errors.Join(err, failed, file.Close()); err == nil {
		err = p.root.Rename(unfinished, name)
	}
	if err != nil {
		p.root.Remove(unfinished)
	}
	return err
}

// bootID tells one run of the machine from the next, where the system says so.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})
