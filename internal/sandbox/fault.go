package sandbox

import (
	"cmp"
	"net/http"
	"strconv"
	"time"
)

// A Fault says what befalls one request. The zero value is ordinary service.
// Fields combine.
type Fault struct {
	// Status replaces the ordinary status. At 300 and above the request is not
	// processed, unless Process is set, and the body is an error object. Below
	// 300 a download ignores Range.
	Status int
	// RetryAfter adds a Retry-After header in seconds, rounded up.
	RetryAfter time.Duration
	// Body replaces the ordinary body.
	Body string
	// NoBody sends no body.
	NoBody bool
	// ContentType replaces the ordinary Content-Type.
	ContentType string
	// Header is set in the response's header, for example a Location. A name with a
	// nil value is taken out of it.
	Header http.Header
	// Process processes the request, so that a refund is recorded, although
	// Status says otherwise.
	Process bool
	// Refuse refuses the connection before any byte of the request leaves, so
	// that nothing is recorded. On a TCP address, where the connection is made
	// by then, it is DropBefore.
	Refuse bool
	// DropBefore resets the connection without reading the request's body.
	DropBefore bool
	// DropAfter processes the request and resets the connection instead of
	// responding.
	DropAfter bool
	// HeaderDelay passes after processing and before the response's header.
	HeaderDelay time.Duration
	// BodyDelay passes in the middle of the response's body.
	BodyDelay time.Duration
	// DelayAfter moves BodyDelay behind so many bytes of the body, or, if it is
	// negative, before the first.
	DelayAfter int
	// BytesPerSecond slows the body down.
	BytesPerSecond int
	// Truncate ends the connection after so many bytes of a longer body, of
	// which Content-Length announces the whole. A negative value sends the
	// header only.
	Truncate int
	// Chunked sends the body in chunks, without Content-Length.
	Chunked bool
	// Unframed sends the body without Content-Length and without chunks, so that
	// the end of the connection is its end, also where Truncate cut it off.
	Unframed bool
	// Range is what a download serves in place of the request's Range and
	// If-Range, as in "bytes=100-199".
	Range string
}

// A PostFault is a Fault of the areas that are posted to, where there are no
// ranges.
type PostFault struct {
	Status         int
	RetryAfter     time.Duration
	Body           string
	NoBody         bool
	ContentType    string
	Header         http.Header
	Process        bool
	Refuse         bool
	DropBefore     bool
	DropAfter      bool
	HeaderDelay    time.Duration
	BodyDelay      time.Duration
	DelayAfter     int
	BytesPerSecond int
	Truncate       int
	Chunked        bool
	Unframed       bool
}

// Fault returns f as the engine takes it.
func (f PostFault) Fault() Fault {
	return Fault{
		Status:         f.Status,
		RetryAfter:     f.RetryAfter,
		Body:           f.Body,
		NoBody:         f.NoBody,
		ContentType:    f.ContentType,
		Header:         f.Header,
		Process:        f.Process,
		Refuse:         f.Refuse,
		DropBefore:     f.DropBefore,
		DropAfter:      f.DropAfter,
		HeaderDelay:    f.HeaderDelay,
		BodyDelay:      f.BodyDelay,
		DelayAfter:     f.DelayAfter,
		BytesPerSecond: f.BytesPerSecond,
		Truncate:       f.Truncate,
		Chunked:        f.Chunked,
		Unframed:       f.Unframed,
	}
}

func (f Fault) clone() Fault {
	f.Header = f.Header.Clone()
	return f
}

func (f Fault) processes() bool {
	return f.Status < 300 || f.Process || f.DropAfter
}

func (f Fault) shape(a *response) {
	switch {
	case f.Status >= 300:
		*a = failure(f.Status, "scripted", cmp.Or(http.StatusText(f.Status), "scripted status"))
	case f.Status != 0:
		a.status = f.Status
	}
	if f.Body != "" || f.NoBody {
		a.body, a.content, a.failure = []byte(f.Body), nil, nil
		if f.NoBody {
			a.body, a.contentType = nil, ""
		}
	}
	a.contentType = cmp.Or(f.ContentType, a.contentType)
	if a.header == nil {
		a.header = make(http.Header)
	}
	f.setHeader(a.header)
	if f.RetryAfter > 0 {
		seconds := (f.RetryAfter + time.Second - 1) / time.Second
		a.header.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
}

func (f Fault) setHeader(h http.Header) {
	for name, values := range f.Header {
		if name = http.CanonicalHeaderKey(name); values == nil {
			delete(h, name)
		} else {
			h[name] = values
		}
	}
}
