package faults

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A fault is what befalls one request. The zero value is ordinary service.
type fault struct {
	unread     bool // the connection is reset before the request is read
	expire     bool // all tokens so far expire with this request
	status     int  // 0: the ordinary one
	recorded   bool // processed although the status does not say so
	retryAfter string
	remaining  string        // of what a limiter allows
	early      int           // an informational status first
	delay      time.Duration // after processing
	page       page          // in place of the ordinary body
	changes    bool          // the content of a download is another from now on
	tag        tag           // of the content
	span       span          // of the content that is sent
	chunked    bool          // the length is not announced
	garbage    bool          // in place of a response
	encoded    bool          // as it says, in a way that nobody asked for
	twice      bool          // the response comes a second time, where no request waits for it
	frame      frame         // of HTTP/2, before the answer
	ends       bool          // after cut bytes of the answer
	cut        int
	how        ending
	closes     time.Duration // so long after the answer the connection ends by how
}

// A page is a body that is none of the service's results.
type page string

const (
	ordinary    page = ""
	empty       page = "empty"
	errorObject page = "error object"
	html        page = "HTML"
	notJSON     page = "not JSON"
	huge        page = "huge"
	endless     page = "endless" // of spaces, slowly
)

// A tag is how a content says which version it is.
type tag string

const (
	strong tag = ""
	weak   tag = "weak"
	none   tag = "none"
	dated  tag = "dated" // by its time alone
)

func drawTag(c chance) tag { return pick(c, strong, weak, none, dated) }

// A span is how a service takes a request for a part of a content.
type span string

const (
	asAsked   span = ""
	whole     span = "whole"
	shifted   span = "shifted"   // another part than was asked for, and it says so
	shortened span = "shortened" // less than was asked for, and it says so
	unnamed   span = "unnamed"   // a part that is not named
	notThere  span = "not there"
)

func drawSpan(c chance) span { return pick(c, asAsked, whole, shifted, shortened, unnamed, notThere) }

// A frame says of a request over HTTP/2 that it was not processed, truly or not.
type frame string

const (
	noFrame     frame = ""
	resetStream frame = "RST_STREAM"
	goAway      frame = "GOAWAY"
)

// bytes are those of the frame, with the code PROTOCOL_ERROR, and as if no stream
// had been processed.
func (f frame) bytes(stream uint32) []byte {
	if f == resetStream {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte{0, 0, 4, 3, 0}, stream), 1)
	}
	return append([]byte{0, 0, 8, 7, 0, 0, 0, 0, 0}, 0, 0, 0, 0, 0, 0, 0, 0)
}

// An ending is how a connection ends.
type ending string

const (
	reset   ending = ""
	closed  ending = "closed"
	stalled ending = "stalled" // it stays, and nothing comes
)

func (f fault) String() string { return set(f) }

// set names the fields of a struct that are not zero.
func set(v any) string {
	var b strings.Builder
	for field, value := range reflect.ValueOf(v).Fields() {
		switch {
		case value.IsZero():
		case value.Kind() == reflect.Bool:
			fmt.Fprintf(&b, " %s", field.Name)
		case field.Type == reflect.TypeFor[time.Duration]():
			fmt.Fprintf(&b, " %s=%v", field.Name, time.Duration(value.Int()))
		default:
			fmt.Fprintf(&b, " %s=%+v", field.Name, value)
		}
	}
	return cmp.Or(strings.TrimSpace(b.String()), "ordinary")
}

// undecided are statuses that do not tell whether a request was processed, and so is a 429 that
// nobody signs.
var undecided = []int{301, 302, 303, 304, 406, 408, 416, 420, 421, 424, 425, 499, 500, 502, 503, 504, 599, 600}

// refusals are statuses that say that it was not.
var refusals = []int{307, 308, 400, 403, 404, 405, 409, 410, 413, 414, 415, 422, 431, 451, 501, 505}

// vouched are what the service of a caller who says so sends only if it has processed nothing.
var vouched = []int{429, 500, 503}

var retryAfters = []string{"", "", "0", "1", "2", "7", "45", "60", "61", "3600", "99999999999999999999", "-1", "1.5", "soon", " 3 "}

func drawRemaining(c chance) string { return pick(c, "", "", "0", "7", "-1") }

var faultKinds = []func(c chance) fault{
	func(c chance) fault { return fault{unread: true} },
	func(c chance) fault { return fault{ends: true, how: pick(c, reset, closed, stalled)} }, // before the first byte
	func(c chance) fault {
		return fault{ends: true, how: pick(c, reset, closed, stalled), cut: c.IntN(1500), chunked: c.percent(50)}
	},
	func(c chance) fault {
		return fault{ends: true, how: pick(c, reset, closed, stalled), cut: c.IntN(100_000), chunked: c.percent(50)}
	},
	func(c chance) fault { return fault{delay: c.within(50 * time.Second)} },
	func(c chance) fault {
		return fault{delay: c.within(20 * time.Second), ends: true, how: pick(c, reset, closed)}
	},
	func(c chance) fault {
		return fault{status: pick(c, undecided...), recorded: c.percent(50), page: drawErrorPage(c)}
	},
	func(c chance) fault {
		return fault{status: 503, recorded: c.percent(50), retryAfter: pick(c, retryAfters...), page: drawErrorPage(c)}
	},
	func(c chance) fault { return fault{status: pick(c, refusals...), page: drawErrorPage(c)} },
	func(c chance) fault {
		return fault{status: pick(c, 421, 425, 429, 429, 429), recorded: c.percent(50), retryAfter: pick(c, retryAfters...), remaining: drawRemaining(c), page: drawErrorPage(c)}
	},
	func(c chance) fault { return fault{expire: true} },
	func(c chance) fault {
		return fault{page: html, recorded: c.percent(50), status: pick(c, 0, 200, 403, 502)}
	},
	func(c chance) fault { return fault{page: pick(c, notJSON, empty), status: pick(c, 0, 201, 202, 204)} },
	func(c chance) fault { return fault{garbage: true, recorded: c.percent(50)} },
	func(c chance) fault {
		return fault{early: pick(c, 100, 103), ends: c.percent(50), cut: 30, how: pick(c, reset, closed)}
	},
	func(c chance) fault { return fault{closes: 1 + c.within(4*time.Second), how: pick(c, reset, closed)} },
	func(c chance) fault { return fault{closes: 1, how: pick(c, reset, closed)} },
	func(c chance) fault {
		return fault{frame: pick(c, resetStream, goAway), delay: c.within(2 * time.Second)}
	},
	func(c chance) fault { return fault{changes: true, tag: drawTag(c)} },
	func(c chance) fault {
		return fault{span: drawSpan(c), tag: drawTag(c), ends: c.percent(50), cut: c.IntN(100_000)}
	},
	func(c chance) fault { return fault{encoded: true, page: pick(c, ordinary, huge)} },
	func(c chance) fault { return fault{page: pick(c, errorObject, huge), recorded: c.percent(50)} },
	func(chance) fault { return fault{twice: true} },
}

// contentFaults break a content, and answer in all ways when the client asks for the rest.
// A reset also loses what is under way, so it seldom breaks a content.
var contentFaults = []func(c chance) fault{
	func(c chance) fault {
		return fault{ends: true, how: pick(c, closed, stalled), cut: c.IntN(30_000), chunked: c.percent(20)}
	},
	func(c chance) fault { return fault{ends: true, how: pick(c, closed, stalled), cut: 300 + c.IntN(300)} },
	func(c chance) fault { return fault{ends: true, how: closed, cut: 300 + c.IntN(90_000)} },
	func(c chance) fault { return fault{span: drawSpan(c)} },
	func(c chance) fault { return fault{span: pick(c, shifted, shortened)} },
	func(c chance) fault { return fault{changes: true, tag: drawTag(c)} },
	func(c chance) fault { return fault{unread: c.percent(50), status: pick(c, 0, 500, 503)} },
	func(chance) fault { return fault{} },
}

func drawFault(c chance, from []func(chance) fault) fault {
	f := pick(c, from...)(c)
	if c.percent(20) && f.delay == 0 {
		f.delay = c.within(4 * time.Second)
	}
	return f
}

func drawErrorPage(c chance) page {
	return pick(c, ordinary, errorObject, errorObject, empty, html, huge, endless)
}

// records tells whether a request that meets f is processed.
func (f fault) records() bool {
	switch {
	case f.unread:
		return false
	case f.garbage, (f.page == html || f.page == errorObject) && f.status/100 <= 2:
		return f.recorded
	case f.status == 0 || f.status/100 == 2:
		return true
	}
	return f.recorded && (slices.Contains(undecided, f.status) || f.status == 429 && !isSigned(f.retryAfter, f.remaining))
}

// isSigned tells whether a limiter says that it has refused a request.
func isSigned(wait, remaining string) bool {
	return remaining == "0" || wait != "" && !slices.Contains([]string{"-1", "soon"}, wait)
}
