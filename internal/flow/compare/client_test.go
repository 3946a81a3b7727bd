package compare

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/flow"
)

// A door is all that the clients know of a window.
type door interface {
	Acquire(context.Context, flow.Request) (release func(flow.Result), err error)
}

// byHand is the client without a window, as with net/http.
type byHand struct{}

func (byHand) Acquire(context.Context, flow.Request) (release func(flow.Result), err error) {
	return func(flow.Result) {}, nil
}

// A call is one of Submit, or a record of SubmitAll.
type call struct {
	at, deadline sec
	of           uint64  // stands for the refund; 0: it is one of its own
	luck         float64 // between 0 and 1
	bad          bool    // it always fails, and is not counted: what becomes of the others?
	process      int

	began, served sec // when it began, and for how long the service has had it
}

// A result says what became of the calls that count.
type result struct {
	calls, accepted, notSent, unknown int
	late                              int // waited in the client for more than a second
	back                              sec // from the end of the last outage to the next call that was accepted
	took                              sec
}

// A sim is some processes, whose clients use a service, in fake time.
type sim struct {
	began time.Time
	doors []door

	mu       sync.Mutex
	scenario *scenario
	random   *rand.Rand
	paused   sec // a Retry-After ends
	asked    int // responses with one, without a success between them
	result   result
}

// The defaults of the clients.
const (
	mostRetries    = 2
	retryBase      = 0.2
	throttleBase   = 1.0
	mostWait       = 5.0
	rowOfPause     = 3
	attemptTimeout = 35.0
	mostWaiting    = 1024
	giveUpAfter    = 1800.0
)

// run runs clients with a window in each process, or by hand.
func run(t *testing.T, s *scenario, seed uint64, hand bool, clients func(*sim)) (r result) {
	synctest.Test(t, func(t *testing.T) {
		m := &sim{began: time.Now(), scenario: s, random: rand.New(rand.NewPCG(seed, 13))}
		for i := range max(1, s.processes) {
			if hand {
				m.doors = append(m.doors, byHand{})
				continue
			}
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			m.doors = append(m.doors, flow.New(func(below time.Duration) time.Duration { return time.Duration(random.Int64N(int64(below))) }))
		}
		m.result.back = math.Inf(1)
		clients(m)
		m.result.took = m.now()
		r = m.result
	})
	return r
}

func (m *sim) now() sec { return time.Since(m.began).Seconds() }

func (m *sim) sleepUntil(at sec) { time.Sleep(duration(at-m.now()) + 1) }

func duration(s sec) time.Duration { return time.Duration(s * 1e9) }

// A timeless context has a deadline without a timer: the clients of a simulation look at it themselves.
type timeless struct {
	context.Context
	deadline time.Time
}

func (t timeless) Deadline() (time.Time, bool) { return t.deadline, !t.deadline.IsZero() }

// attempt makes a request. Its error is that of the window: it was not sent.
func (m *sim) attempt(c *call, r flow.Request) (response, error) {
	ctx := timeless{context.Background(), time.Time{}}
	if !r.Bulk {
		ctx.deadline = m.began.Add(duration(c.deadline))
	}
	release, err := m.doors[c.process].Acquire(ctx, r)
	if err != nil {
		return response{}, err
	}
	m.mu.Lock()
	now := m.now()
	deadline := min(c.deadline, now+attemptTimeout)
	answer := m.scenario.service(request{now, deadline, c, r.Retry})
	m.mu.Unlock()
	if answer.at > deadline {
		answer = response{silent, deadline, 0}
	}
	m.sleepUntil(answer.at)
	took := m.now() - now
	c.served += took
	m.obeys(answer)
	res := flow.Result{Says: answer.says(r.Bulk), Why: "it failed"}
	if res.Says == flow.Success || res.Says == flow.Late {
		res.Took = duration(took)
	}
	release(res)
	return answer, nil
}

// says is what transport takes a response for.
func (r response) says(bulk bool) flow.Says {
	switch r.reply {
	case accepted:
		return flow.Success
	case unavailable, limited:
		return flow.Overload
	case silent:
		return flow.Late
	case failed:
		if bulk {
			return flow.Overload
		}
	}
	return flow.Failure
}

// obeys notes a Retry-After. Those of three responses in a row hold back everybody.
func (m *sim) obeys(r response) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.reply == accepted {
		m.asked = 0
	}
	if r.asks > 0 {
		if m.asked++; m.asked >= rowOfPause {
			m.paused = max(m.paused, m.now()+r.asks)
		}
	}
}

// pause waits for the end of a Retry-After, unless the deadline comes first.
func (m *sim) pause(deadline sec) (ok bool) {
	for {
		m.mu.Lock()
		until := m.paused
		m.mu.Unlock()
		switch {
		case until <= m.now():
			return true
		case until >= deadline:
			return false
		}
		m.sleepUntil(until)
	}
}

// backoff is the wait before a retry, after n retries.
func (m *sim) backoff(n int, r response, left sec) sec {
	m.mu.Lock()
	defer m.mu.Unlock()
	base := retryBase
	if r.reply == limited {
		base, left = throttleBase, math.Inf(1)
	}
	wait := min(base*math.Pow(2, float64(n)), mostWait, left/4) * m.random.Float64()
	return max(wait, r.asks*(1+m.random.Float64()/10))
}

// ends counts what became of a call.
func (m *sim) ends(c *call, as *int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.bad {
		return
	}
	now := m.now()
	m.result.calls++
	*as++
	if now-c.began-c.served > 1 {
		m.result.late++
	}
	if as == &m.result.accepted && c.began >= m.scenario.over {
		m.result.back = min(m.result.back, now-m.scenario.over)
	}
}

// submits makes the calls of a scenario.
func submits(m *sim) {
	var calls sync.WaitGroup
	for i := range m.scenario.calls {
		c := &m.scenario.calls[i]
		m.sleepUntil(c.at)
		calls.Go(func() { m.ends(c, m.submit(c)) })
	}
	calls.Wait()
}

func (m *sim) submit(c *call) (became *int) {
	c.began = m.now()
	became = &m.result.notSent
	for n := 0; ; n++ {
		if !m.pause(c.deadline) {
			return became
		}
		answer, err := m.attempt(c, flow.Request{Of: c.of, Retry: n > 0})
		if err != nil {
			return became
		}
		switch answer.reply {
		case accepted:
			return &m.result.accepted
		case unavailable, failed, silent:
			return &m.result.unknown
		}
		wait := m.backoff(n, answer, c.deadline-m.now())
		if n == mostRetries || m.now()+wait >= c.deadline {
			return became
		}
		time.Sleep(duration(wait))
	}
}

// A bulk is a call of SubmitAll.
type bulk struct {
	*sim
	slots   chan struct{} // in flight
	waiting chan struct{} // have given their slots to others
	worked  sec
}

// submitsAll makes a call of SubmitAll.
func submitsAll(records, inFlight int) func(*sim) {
	return func(m *sim) {
		b := &bulk{sim: m, slots: make(chan struct{}, inFlight), waiting: make(chan struct{}, mostWaiting)}
		var all sync.WaitGroup
		for i := range records {
			b.slots <- struct{}{}
			like := m.scenario.calls[i%len(m.scenario.calls)]
			c := &call{deadline: math.Inf(1), luck: like.luck, bad: like.bad, process: like.process, began: m.now()}
			all.Go(func() {
				m.ends(c, b.record(c))
				<-b.slots
			})
		}
		all.Wait()
	}
}

func (b *bulk) record(c *call) (became *int) {
	for n := 0; ; n++ {
		b.pause(math.Inf(1))
		answer, err := b.attempt(c, flow.Request{Bulk: true, Retry: n > 0})
		pause, isDown := errors.AsType[*flow.Pause](err)
		b.mu.Lock()
		if err == nil && answer.reply == accepted {
			b.worked = b.now()
		}
		gaveUp := b.now()-b.worked > giveUpAfter
		b.mu.Unlock()
		switch {
		case isDown && !gaveUp:
			select {
			case <-time.After(time.Until(pause.Until)):
			case <-pause.Over:
			}
			continue
		case err != nil:
			return &b.result.notSent
		case answer.reply == accepted:
			return &b.result.accepted
		case gaveUp || answer.reply != limited && answer.reply != refused:
			return &b.result.unknown
		}
		b.sleep(b.backoff(n, answer, math.Inf(1)))
	}
}

// sleep gives the slot to another record meanwhile.
func (b *bulk) sleep(wait sec) {
	select {
	case b.waiting <- struct{}{}:
		<-b.slots
		time.Sleep(duration(wait))
		b.slots <- struct{}{}
		<-b.waiting
	default:
		time.Sleep(duration(wait))
	}
}
