package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A wire is the HTTP transport as the library reaches it. Every attempt passes
// it, so it sees whether the library keeps to its bounds.
type wire struct {
	w    *world
	base http.RoundTripper // what it is around

	mu       sync.Mutex
	journeys map[journeyKey]*journey
	bodies   map[string]int
	events   int // so far
	sends    []time.Time
	leaves   int // of the limiter
	pauses   []pause
	asked    map[string]int // responses to an account in a row that asked for a pause
	unclosed int
}

// A journey is one request of the library with its repetitions.
type journey struct {
	call  *call
	began time.Time
	first int // event of the wire
	last  int
	sent  int
	hops  int     // of redirects, which are no repetitions
	again bool    // it was repeated after a refusal
	trail []trace // of the attempts that ended
}

type journeyKey struct {
	call *call
	body string
}

// A trace is how an attempt ended, as the harness sees it.
type trace struct {
	status     int // 0: without an answer
	err        error
	retryAfter time.Duration
	account    string
	signed     bool // by a limiter
	ended      time.Time
	hop        bool // to where a redirect leads
}

// A pause is one that the service asked for, of an account.
type pause struct {
	from, to time.Time
	account  string
}

// accountOf is what a service may limit: the account of a refund, or a merchant.
func accountOf(req *http.Request) string {
	if account, ok := strings.CutSuffix(req.URL.EscapedPath(), "/refunds"); ok {
		return account
	}
	return req.Header.Get("X-Merchant-Id")
}

func newWire(w *world) *wire {
	return &wire{w: w, base: w.network.transport, journeys: map[journeyKey]*journey{}, bodies: map[string]int{}, asked: map[string]int{}}
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(strings.NewReader(string(body)))
	}
	j, a := w.depart(req, string(body))
	if n := w.underWay(j.call); j.call != nil && n > j.call.concurrency {
		w.w.violate(overLimit, "%s: %d attempts at once", j.call, n)
	}
	ctx := context.WithValue(req.Context(), attemptKey{}, a)
	if w.w.settings.opaque {
		ctx = withoutTraces{ctx}
	}
	out := req.WithContext(ctx)
	out.Header = req.Header.Clone()
	out.Header.Set(attemptHeader, fmt.Sprintf("%d %d: %s", a.n, a.turn, a.request))
	end := trace{err: errThrown}
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events++
		j.last = w.events
		j.trail = append(j.trail, end)
		if end.hop {
			j.hops++
		}
	}()
	late, does := w.w.chance("late "+a.String()).percent(50), misdeed("")
	misbehave := func() misdeed { return w.w.misbehave(req.Context(), roundTripper, true) }
	if !late {
		does = misbehave()
	}
	if does == fails {
		return nil, errThrown
	}
	resp, err := w.base.RoundTrip(out)
	end = trace{err: err, ended: time.Now(), account: accountOf(req)}
	if err == nil {
		end.status = resp.StatusCode
		end.retryAfter = retryAfter(resp.Header)
		end.signed = isSigned(resp.Header.Get("Retry-After"), resp.Header.Get("RateLimit-Remaining"))
		end.hop = end.status/100 == 3 && req.Method == http.MethodGet && resp.Header.Get("Location") != ""
	}
	w.w.note("%v: ended: status %d, %v", a, end.status, err)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.unclosed++
	w.mu.Unlock()
	watched := &watchedBody{ReadCloser: resp.Body, call: j.call, w: w.w, closed: sync.OnceFunc(func() { w.closed(end) })}
	resp.Body = watched
	if late {
		watched.misbehave = misbehave
	}
	if does == lies {
		resp, err = w.w.lie(a, resp)
		switch {
		case resp == nil || err != nil:
			end = trace{err: errThrown, ended: end.ended}
		case resp.Header == nil:
			end.retryAfter, end.signed, end.hop = 0, false, false
		}
	}
	return resp, err
}

// slack is how long a resume may take that began in time.
const slack = 3 * time.Minute

// depart notes an attempt before it is made.
func (w *wire) depart(req *http.Request, body string) (*journey, attemptName) {
	now := time.Now()
	w.mu.Lock()
	w.events++
	key := journeyKey{callOf(req.Context()), body + req.Header.Get("Range")}
	j := w.journeys[key]
	if j == nil {
		j = &journey{call: key.call, first: w.events, began: now}
		w.journeys[key] = j
	}
	j.sent++
	a := attemptName{key.name(), j.sent, j.sent}
	if key.call != nil && key.call.concurrency == 1 {
		key.call.attempts++
		a.turn = key.call.attempts
	}
	w.bodies[body]++
	w.sends = append(w.sends, now)
	withoutLeave := w.w.settings.limit > 0 && w.w.settings.ownLimiter && len(w.sends) > w.leaves
	// What panics or hangs while a response is taken in keeps the pause from being known.
	unknown := w.w.parts.part == logger || w.w.parts.part == roundTripper
	paused := !unknown && slices.ContainsFunc(w.pauses, func(p pause) bool { return p.account == accountOf(req) && now.After(p.from) && now.Before(p.to) })
	// Requests of a loader belong to no call, and may ask the same anew.
	refused := j.call != nil && len(j.trail) > 0 && j.trail[len(j.trail)-1].isRefusal(j.call)
	// LookupAll asks once more for what was refused because of the set-up, if that turns out to be right. After
	// ten such refusals it sends nothing more.
	if refused && j.call.patient && !j.again && !j.trail[len(j.trail)-1].isOfContent() && j.call.again < 9+j.call.concurrency {
		refused, j.again = false, true
		j.call.again++
	}
	tooLong := j.call != nil && !j.call.patient && len(j.trail) > 0 && j.trail[len(j.trail)-1].retryAfter > time.Minute+5*time.Second
	allowed := 1 + w.w.settings.retries
	resumed := req.Header.Get("Range") != ""
	tooMany := j.call != nil && !resumed && j.sent-j.hops > allowed*j.call.beginnings
	excess := ""
	if j.call != nil && !resumed && j.call.beginnings == 1 && j.call.concurrency == 1 && len(j.trail) > 0 {
		excess = w.excess(j.trail, strings.HasSuffix(req.URL.Path, "/refunds"), now)
	}
	late := 5*time.Minute + slack
	if w.w.parts.does == hangs {
		late += mostMisdeeds * longestHang
	}
	tooLate := resumed && now.Sub(j.began) > late
	w.mu.Unlock()

	w.w.note("%v: sent", a)
	w.w.count("request sent")
	switch {
	case withoutLeave:
		w.w.violate(overLimit, "%s: sent without leave of the limiter", j.call)
	case paused:
		w.w.violate(inPause, "%s: sent while the service asked for a pause", j.call)
	case refused:
		w.w.violate(tooOften, "%s: a refusal is repeated", j.call)
	case j.call != nil && j.call.ctx.Err() != nil:
		w.w.violate(overdue, "%s: sent after its end", j.call)
	case tooLong:
		w.w.violate(tooOften, "%s: repeated although the service asked for a wait beyond a minute", j.call)
	case excess != "":
		w.w.violate(tooOften, "%s: attempt %d %s", j.call, j.sent, excess)
	case tooLate:
		w.w.violate(tooOften, "%s: resumed without a byte for %v", j.call, now.Sub(j.began))
	case tooMany:
		w.w.violate(tooOften, "%s: attempt %d with %d retries allowed", j.call, j.sent, w.w.settings.retries)
	}
	return j, a
}

// name names a request of a call: by where it begins, or by its body.
func (k journeyKey) name() string {
	if from, ok := strings.CutPrefix(k.body, "bytes="); ok {
		return fmt.Sprintf("%v from byte %s", k.call, strings.TrimSuffix(from, "-"))
	}
	if k.body == "" {
		return k.call.String()
	}
	return fmt.Sprintf("%v %s", k.call, brief(k.body))
}

func (w *wire) closed(end trace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unclosed--
	switch {
	case end.status/100 == 2:
		w.asked[end.account] = 0
	case end.retryAfter > 0 && (end.status == 429 || end.status == 503):
		if w.asked[end.account]++; w.asked[end.account] >= 3 {
			now := time.Now()
			w.pauses = append(w.pauses, pause{now, now.Add(min(end.retryAfter-now.Sub(end.ended), time.Minute)), end.account})
		}
	}
}

func (w *wire) sentOf(body string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bodies[body]
}

// sentBy is how often a call sent a body.
func (w *wire) sentBy(c *call, body string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.journeys[journeyKey{c, body}]; j != nil {
		return j.sent
	}
	return 0
}

// inTurn tells whether all attempts of one request of a call ended before the
// first of another.
func (w *wire) inTurn(c *call, first, second string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, two := w.journeys[journeyKey{c, first}], w.journeys[journeyKey{c, second}]
	return one == nil || two == nil || one.last < two.first
}

// underWay counts the attempts of a call that have no answer.
func (w *wire) underWay(c *call) (n int) {
	for _, j := range w.of(c) {
		w.mu.Lock()
		n += j.sent - len(j.trail)
		w.mu.Unlock()
	}
	return n
}

// of returns the journeys of a call, as they are now: what a hung part holds up may still end.
func (w *wire) of(c *call) []journey {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []journey
	for key, j := range w.journeys {
		if key.call == c {
			now := *j
			now.trail = slices.Clone(j.trail)
			all = append(all, now)
		}
	}
	return all
}

// isRefusal tells whether no repetition can change the response. For what goes on in
// bulk, only an answer about its cards is one.
func (t *trace) isRefusal(c *call) bool {
	return !t.hop && slices.Contains(refusals, t.status) && (t.status/100 == 4 || !c.patient)
}

// isOfContent tells whether a refusal is about what was asked for, and not about who asks, or where.
func (t *trace) isOfContent() bool {
	return !slices.Contains([]int{403, 404, 405, 410}, t.status)
}

// retryAfter is what a header asks for, read independently of the library.
func retryAfter(h http.Header) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if at, err := time.Parse(http.TimeFormat, value); err == nil {
		date, _ := time.Parse(http.TimeFormat, h.Get("Date"))
		return max(0, at.Sub(date))
	}
	if value == "1.5" {
		value = "2"
	}
	seconds, err := strconv.ParseUint(value, 10, 64)
	if err != nil && !strings.HasPrefix(value, "9999") {
		return 0
	}
	return time.Duration(min(seconds, 1e6)) * time.Second
}

// A watchedBody knows when it is closed, and how long it was waited for.
type watchedBody struct {
	io.ReadCloser
	w         *world
	call      *call
	closed    func()
	misbehave func() misdeed
}

func (b *watchedBody) Read(p []byte) (int, error) {
	if b.misbehave != nil && b.misbehave() == fails {
		return 0, errThrown
	}
	began := time.Now()
	n, err := b.ReadCloser.Read(p)
	if waited, most := time.Since(began), b.w.settings.attemptTimeout; most > 0 && waited > most {
		b.w.violate(overdue, "%s: a read of the answer took %v", b.call, waited)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}

// withoutTraces is a context as of an HTTP transport that knows no traces.
type withoutTraces struct{ context.Context }

func (c withoutTraces) Value(key any) any {
	if key != (attemptKey{}) {
		return nil
	}
	return c.Context.Value(key)
}
