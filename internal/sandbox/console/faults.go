package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// A rule switches a fault on for the next requests of an area, or for a
// percentage of them. A named fault fills in the details that are left out.
type rule struct {
	ID      int          `json:"id,omitempty"`
	Fault   string       `json:"fault"`
	Area    sandbox.Area `json:"area,omitempty"` // "": all three
	Next    int          `json:"next,omitempty"`
	Percent int          `json:"percent,omitempty"`
	Match   *match       `json:"match,omitempty"`
	details
}

// The details of a rule say what befalls a request, as sandbox.Fault does.
type details struct {
	Status         *int               `json:"status,omitempty"`
	RetryAfter     *int               `json:"retry_after,omitempty"` // seconds
	Code           string             `json:"code,omitempty"`
	Message        string             `json:"message,omitempty"`
	Header         map[string]*string `json:"header,omitempty"`
	Body           *string            `json:"body,omitempty"`
	ContentType    string             `json:"content_type,omitempty"`
	ContentLength  *int               `json:"content_length,omitempty"`
	Process        bool               `json:"process,omitempty"`
	DropBefore     bool               `json:"drop_before,omitempty"`
	DropAfter      bool               `json:"drop_after,omitempty"`
	Delay          *float64           `json:"delay,omitempty"`      // seconds
	BodyDelay      *float64           `json:"body_delay,omitempty"` // seconds
	DelayAfter     int                `json:"delay_after,omitempty"`
	BytesPerSecond int                `json:"bytes_per_second,omitempty"`
	Truncate       *int               `json:"truncate,omitempty"`
	Chunked        bool               `json:"chunked,omitempty"`
	Unframed       bool               `json:"unframed,omitempty"`
	Range          string             `json:"range,omitempty"`
}

// A match narrows a rule down to some requests of its area.
type match struct {
	Path   string            `json:"path,omitempty"`   // as sent; with * at its end, what it begins with
	Header map[string]string `json:"header,omitempty"` // "*": any value, "": none
	Body   string            `json:"body,omitempty"`   // what it contains
}

const (
	rateLimited      = "rate_limited"
	dropBeforeAccept = "drop_before_accept"
	dropAfterAccept  = "drop_after_accept"
	slow             = "slow"
	serverError      = "server_error"
	truncated        = "truncated"
	wrongLength      = "wrong_length"
	jobNotReady      = "job_not_ready"
	custom           = "custom"
)

const (
	maxNext    = 1_000_000
	maxSeconds = 3600
)

// named are the details that a fault stands for. They are the sandbox's own choice
// where the interface shows none, as for the status of a job that is not ready.
var named = map[string]details{
	rateLimited:      {Status: new(http.StatusTooManyRequests), RetryAfter: new(1)},
	dropBeforeAccept: {DropBefore: true},
	dropAfterAccept:  {DropAfter: true},
	slow:             {Delay: new(3.0)},
	serverError:      {Status: new(http.StatusServiceUnavailable)},
	truncated:        {},
	wrongLength:      {ContentLength: new(1 << 20)},
	jobNotReady:      {Status: new(http.StatusConflict), Code: jobNotReady, Message: "the result of the job is not ready"},
	custom:           {},
}

// complete fills in what the fault stands for and r leaves out.
func (r *rule) complete() {
	given, standard := reflect.ValueOf(&r.details).Elem(), reflect.ValueOf(named[r.Fault])
	for i := range given.NumField() {
		if given.Field(i).IsZero() {
			given.Field(i).Set(standard.Field(i))
		}
	}
	if r.Fault == jobNotReady && r.Area == "" {
		r.Area = sandbox.Updater
	}
}

// check completes r.
func (r *rule) check() error {
	if r.Fault == "" {
		r.Fault = custom
	}
	if _, known := named[r.Fault]; !known {
		return errors.New("fault must be rate_limited, drop_before_accept, drop_after_accept, slow, server_error, truncated, wrong_length, job_not_ready or custom")
	}
	r.ID = 0
	r.complete()
	if !slices.Contains([]sandbox.Area{"", sandbox.Bins, sandbox.Refunds, sandbox.Updater}, r.Area) {
		return errors.New("area must be bins, refunds or updater, or left out for all three")
	}
	if r.Next < 0 || r.Next > maxNext || r.Percent < 0 || r.Percent > 100 || r.Next > 0 && r.Percent > 0 {
		return fmt.Errorf("either next must be a number up to %d or percent one up to 100; 0 switches the fault off", maxNext)
	}
	if r.Fault == custom && r.Next == 0 && r.Percent == 0 {
		return errors.New("a custom fault needs next or percent; DELETE /sandbox/faults/{id} switches it off")
	}
	if r.Fault == serverError && *r.Status < 500 {
		return errors.New("the status of server_error is 500 to 599")
	}
	return r.details.check()
}

func (d *details) check() error {
	switch {
	case d.Status != nil && (*d.Status < 200 || *d.Status > 599):
		return errors.New("status must be 200 to 599")
	case d.RetryAfter != nil && (*d.RetryAfter < 0 || *d.RetryAfter > maxSeconds):
		return fmt.Errorf("retry_after must be 0 to %d seconds", maxSeconds)
	case !isDelay(d.Delay) || !isDelay(d.BodyDelay):
		return fmt.Errorf("delay and body_delay must be above 0 and up to %d seconds", maxSeconds)
	case d.Code+d.Message != "" && (d.Status == nil || *d.Status < 300):
		return errors.New("code and message need a status of 300 and above")
	case d.Code+d.Message != "" && d.Body != nil:
		return errors.New("code and message are in place of body")
	case d.BytesPerSecond < 0, d.ContentLength != nil && *d.ContentLength < 0:
		return errors.New("bytes_per_second and content_length must not be negative")
	case d.DropBefore && d.DropAfter:
		return errors.New("either drop_before or drop_after")
	}
	for name, value := range d.Header {
		if !isToken(name) || value != nil && strings.ContainsAny(*value, "\r\n\x00") {
			return errors.New("header must have names and values that HTTP allows; null takes one away")
		}
	}
	return nil
}

func isDelay(seconds *float64) bool {
	return seconds == nil || *seconds > 0 && *seconds <= maxSeconds
}

func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

func (r *rule) befalls(area sandbox.Area) sandbox.Fault {
	f := sandbox.Fault{
		ContentType: r.ContentType, Process: r.Process, DropBefore: r.DropBefore, DropAfter: r.DropAfter,
		DelayAfter: r.DelayAfter, BytesPerSecond: r.BytesPerSecond, Chunked: r.Chunked, Unframed: r.Unframed, Range: r.Range,
		HeaderDelay: seconds(r.Delay), BodyDelay: seconds(r.BodyDelay),
		Header: make(http.Header),
	}
	if r.Status != nil {
		f.Status = *r.Status
	}
	if r.RetryAfter != nil {
		f.Header.Set("Retry-After", strconv.Itoa(*r.RetryAfter))
	}
	if r.ContentLength != nil {
		f.Header.Set("Content-Length", strconv.Itoa(*r.ContentLength))
	}
	for name, value := range r.Header {
		if name = http.CanonicalHeaderKey(name); value == nil {
			f.Header[name] = nil
		} else {
			f.Header[name] = []string{*value}
		}
	}
	switch {
	case r.Body != nil:
		f.Body, f.NoBody = *r.Body, *r.Body == ""
	case r.Code+r.Message != "":
		body, _ := json.Marshal(map[string]any{"error": map[string]any{"code": r.Code, "message": r.Message, "details": map[string]any{}}})
		f.Body = string(body)
	}
	if r.Truncate != nil {
		if f.Truncate = *r.Truncate; f.Truncate == 0 {
			f.Truncate = -1
		}
	} else if r.Fault == truncated {
		// Somewhere inside the shortest response that the area has.
		f.Truncate = map[sandbox.Area]int{sandbox.Bins: 50, sandbox.Refunds: 1, sandbox.Updater: 100}[area]
	}
	return f
}

func seconds(s *float64) time.Duration {
	if s == nil {
		return 0
	}
	return time.Duration(*s * float64(time.Second))
}

// matches tells whether r applies to a request, of which body is what has been
// read.
func (m *match) matches(req *http.Request, body string) bool {
	if m == nil {
		return true
	}
	path := req.URL.EscapedPath()
	if prefix, open := strings.CutSuffix(m.Path, "*"); open {
		if !strings.HasPrefix(path, prefix) {
			return false
		}
	} else if m.Path != "" && path != m.Path {
		return false
	}
	for name, want := range m.Header {
		values, has := req.Header[http.CanonicalHeaderKey(name)]
		if has != (want != "") || has && want != "*" && !slices.Contains(values, want) {
			return false
		}
	}
	return strings.Contains(body, m.Body)
}

// shown is r as the state tells it: nothing in it is longer than a line, or a card
// number.
func (r rule) shown() rule {
	if r.Match != nil {
		masked := match{Path: text(r.Match.Path), Body: text(r.Match.Body)}
		for name := range r.Match.Header {
			masked.Header = map[string]string{text(name): hides}
		}
		r.Match = &masked
	}
	if r.Body != nil {
		r.Body = new(text(*r.Body))
	}
	header := r.Header
	r.Header = nil
	for name := range header {
		if r.Header == nil {
			r.Header = make(map[string]*string)
		}
		r.Header[text(name)] = new(hides)
	}
	r.Code, r.Message = text(r.Code), text(r.Message)
	return r
}

// faults are the rules in force: of the named ones at most one for each fault, area
// and match, and any number of custom ones.
type faults struct {
	rules []rule
	last  int // id
}

// maxRules bounds a script.
const maxRules = 1000

// set puts r in place of the rule for the same, or switches that one off.
func (f *faults) set(r rule) error {
	same := func(old rule) bool {
		return r.Fault != custom && old.Fault == r.Fault && old.Area == r.Area && reflect.DeepEqual(old.Match, r.Match)
	}
	at := slices.IndexFunc(f.rules, same)
	if at < 0 && len(f.rules) == maxRules {
		return fmt.Errorf("there are %d faults in force already", maxRules)
	}
	f.last++
	r.ID = f.last
	switch {
	case r.Next == 0 && r.Percent == 0:
		f.rules = slices.DeleteFunc(f.rules, same)
	case at >= 0:
		f.rules[at] = r
	default:
		f.rules = append(f.rules, r)
	}
	return nil
}

func (f *faults) remove(id int) bool {
	before := len(f.rules)
	f.rules = slices.DeleteFunc(f.rules, func(r rule) bool { return r.ID == id })
	return len(f.rules) < before
}

// take returns the name of the fault that befalls the next request of area, and
// what it does. A rule for the next requests goes before one for a percentage,
// and an older before a younger one.
func (f *faults) take(area sandbox.Area, req *http.Request, body string) (string, sandbox.Fault) {
	if area == "" {
		return "", sandbox.Fault{}
	}
	applies := func(r rule) bool { return (r.Area == "" || r.Area == area) && r.Match.matches(req, body) }
	for i, r := range f.rules {
		if r.Next == 0 || !applies(r) {
			continue
		}
		if r.Next--; r.Next == 0 {
			f.rules = slices.Delete(f.rules, i, i+1)
		} else {
			f.rules[i] = r
		}
		return r.Fault, r.befalls(area)
	}
	for _, r := range f.rules {
		if rand.IntN(100) < r.Percent && applies(r) {
			return r.Fault, r.befalls(area)
		}
	}
	return "", sandbox.Fault{}
}
