package sandbox

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// A Fault changes how one request is handled. The zero value changes nothing, and fields can
// be combined. refundstest.Fault documents them.
type Fault struct {
	Status     int           `json:"status"`
	RetryAfter time.Duration `json:"-"`
	Header     http.Header   `json:"header"`
	Body       *string       `json:"body"`
	Process    bool          `json:"process"`
	Refuse     bool          `json:"-"`
	Drop       bool          `json:"drop"`
	Delay      time.Duration `json:"-"`
	Truncate   int           `json:"truncate"`
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

func (f Fault) processes() bool { return f.Process || f.Status < 300 && !f.Drop }

func (f Fault) shape(a *response) {
	switch {
	case f.Status >= 300:
		*a = failure(f.Status, "scripted", cmp.Or(http.StatusText(f.Status), "scripted status"))
	case f.Status != 0:
		a.status = f.Status
	}
	if f.Body != nil {
		if a.body, a.content = []byte(*f.Body), nil; *f.Body == "" {
			a.contentType = ""
		}
	}
	if a.header == nil {
		a.header = make(http.Header)
	}
	wait := f.RetryAfter
	if wait == 0 && f.Status == http.StatusTooManyRequests {
		wait = time.Second // as a limiter, which has not processed the request
	}
	if wait > 0 {
		a.header.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
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
