package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
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
	unclosed int
}

// A journey is one request of the library with its repetitions.
type journey struct {
	call  *call
	first int // event of the wire
	last  int
	sent  int
	ended int // of its attempts
}

type journeyKey struct {
	call *call
	body string
}

func newWire(w *world) *wire {
	return &wire{w: w, base: w.network.transport, journeys: map[journeyKey]*journey{}, bodies: map[string]int{}}
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
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events++
		j.last = w.events
		j.ended++
	}()
	late, does := w.w.chance("late "+a.String()).percent(50), misdeed("")
	misbehave := func() misdeed { return w.w.misbehave(req.Context(), roundTripper) }
	if !late {
		does = misbehave()
	}
	if does == fails {
		return nil, errThrown
	}
	resp, err := w.base.RoundTrip(out)
	if err != nil {
		w.w.note("%v: ended: %v", a, err)
		return nil, err
	}
	w.w.note("%v: ended: status %d", a, resp.StatusCode)
	w.mu.Lock()
	w.unclosed++
	w.mu.Unlock()
	watched := &watchedBody{ReadCloser: resp.Body, call: j.call, w: w.w, closed: sync.OnceFunc(w.closed)}
	resp.Body = watched
	if late {
		watched.misbehave = misbehave
	}
	if does == lies {
		return w.w.lie(a, resp)
	}
	return resp, nil
}

// depart notes an attempt before it is made.
func (w *wire) depart(req *http.Request, body string) (*journey, attemptName) {
	w.mu.Lock()
	w.events++
	key := journeyKey{callOf(req.Context()), body + req.Header.Get("Range")}
	j := w.journeys[key]
	if j == nil {
		j = &journey{call: key.call, first: w.events}
		w.journeys[key] = j
	}
	j.sent++
	a := attemptName{key.name(), j.sent, j.sent}
	if key.call != nil && key.call.concurrency == 1 {
		key.call.attempts++
		a.turn = key.call.attempts
	}
	w.bodies[body]++
	tooMany := j.call != nil && req.Header.Get("Range") == "" && j.sent > (1+w.w.settings.retries)*j.call.beginnings
	w.mu.Unlock()

	w.w.note("%v: sent", a)
	w.w.count("request sent")
	switch {
	case j.call != nil && j.call.ctx.Err() != nil:
		w.w.violate(overdue, "%s: sent after its end", j.call)
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

func (w *wire) closed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unclosed--
}

func (w *wire) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unclosed != 0 {
		defer w.w.violate(leaked, "%d bodies were not closed", w.unclosed)
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
		n += j.sent - j.ended
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
			all = append(all, *j)
		}
	}
	return all
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
