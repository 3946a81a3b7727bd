package sandbox

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// A Fault changes how one request is handled. The zero value changes nothing, and fields can
// be combined. updatertest.Fault documents them.
type Fault struct {
	Status      int           `json:"status"`
	RetryAfter  time.Duration `json:"-"`
	Body        string        `json:"body"`
	NoBody      bool          `json:"no_body"`
	ContentType string        `json:"content_type"`
	Header      http.Header   `json:"header"`
	Process     bool          `json:"process"`
	Refuse      bool          `json:"-"`
	DropBefore  bool          `json:"drop_before"`
	DropAfter   bool          `json:"drop_after"`
	HeaderDelay time.Duration `json:"-"`
	BodyDelay   time.Duration `json:"-"`
	DelayAfter  int           `json:"delay_after"`
	Truncate    int           `json:"truncate"`
	Chunked     bool          `json:"chunked"`
	Unframed    bool          `json:"unframed"`
	Range       string        `json:"range"`
}

// FaultOf converts the Fault of a public fake. The fakes of lookups and refunds have no Range.
func FaultOf(f any) Fault {
	var fault Fault
	from, to := reflect.ValueOf(f), reflect.ValueOf(&fault).Elem()
	for i := range from.NumField() {
		to.FieldByName(from.Type().Field(i).Name).Set(from.Field(i))
	}
	return fault
}

// clone copies f, with canonical header names.
func (f Fault) clone() Fault {
	header := f.Header
	f.Header = nil
	for name, values := range header {
		if f.Header == nil {
			f.Header = make(http.Header)
		}
		f.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
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
		a.body, a.content = []byte(f.Body), nil
		if f.NoBody {
			a.body, a.contentType = nil, ""
		}
	}
	a.contentType = cmp.Or(f.ContentType, a.contentType)
	if a.header == nil {
		a.header = make(http.Header)
	}
	wait := f.RetryAfter
	if f.Status == http.StatusTooManyRequests && wait == 0 {
		wait = time.Second // as a limiter, which has not processed the request
	}
	if wait > 0 {
		seconds := (wait + time.Second - 1) / time.Second
		a.header.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	f.setHeader(a.header)
}

func (f Fault) setHeader(h http.Header) {
	for name, values := range f.Header {
		switch {
		case values != nil:
			h[name] = values
		case name == "Content-Type":
			h[name] = nil // net/http would guess one
		default:
			delete(h, name)
		}
	}
}
