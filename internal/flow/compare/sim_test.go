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
	old "github.com/carddata/carddata-go/internal/oldflow"
)

type sec = float64

func dur(s float64) time.Duration { return time.Duration(s * 1e9) }

// A door is what the clients use of a window.
type door interface {
	Acquire(ctx context.Context, r flow.Request) (release func(flow.Result), err error)
}

type hand struct{}

func (hand) Acquire(context.Context, flow.Request) (func(flow.Result), error) {
	return func(flow.Result) {}, nil
}

// was is the window of before.
type was struct{ *old.Window }

func (w was) Acquire(ctx context.Context, r flow.Request) (func(flow.Result), error) {
	if r.Retry {
		if err := w.Recheck(0); err != nil {
			var p *old.Pause
			if errors.As(err, &p) {
				err = &flow.Pause{Until: time.Now().Add(p.Left)}
			}
			return nil, err
		}
	}
	n, err := w.Wait(ctx, 0)
	if err != nil {
		var p *old.Pause
		if errors.As(err, &p) {
			err = &flow.Pause{Until: time.Now().Add(p.Left)}
		}
		return nil, err
	}
	return func(res flow.Result) {
		switch res.Says {
		case flow.Success:
			w.Succeeded(n, res.Took)
		case flow.Answer:
			w.Answered(n)
		case flow.Failure, flow.Overload:
			w.Failed(n, res.Took, res.Why)
		case flow.Late:
			w.Late(n, res.Took, res.Why)
		default:
			w.Ignored(n, res.Took)
		}
	}, nil
}

type reply int

const (
	ok reply = iota
	f503
	f429
	f500
	refused // no connection: it was not sent
	hangs
)

type outage struct {
	from, to sec
	kind     reply
	drains   bool // a stop: what arrives is answered after its end
}

// svc is a service.
type svc struct {
	lat        sec
	spread     float64 // below zero: sigma of a lognormal
	places     int     // queue
	forEver    bool
	conc       int // refuses beyond
	rate       float64
	burst      float64
	minute     int // requests a minute
	status     reply
	retryAfter sec
	share      float64
	of503      bool
	out        []outage
	slowFrom   sec
	slowTo     sec
	slower     float64
	kinds      [2]float64 // share of slow responses, at first and later
	slowKind   sec
	seed       uint64

	random *rand.Rand
	free   []sec
	active []sec
	tokens float64
	lastT  sec
	window int
	used   int
}

func (s *svc) start() {
	s.random = rand.New(rand.NewPCG(s.seed, 11))
	s.free, s.tokens = make([]sec, s.places), s.burst
}

func (s *svc) arrive(now, deadline sec) (done sec, r reply) {
	factor := 1 - s.spread + 2*s.spread*s.random.Float64()
	if s.spread < 0 {
		factor = math.Exp(-s.spread*s.random.NormFloat64() - s.spread*s.spread/2)
	}
	if s.slower > 0 && now >= s.slowFrom && now < s.slowTo {
		factor *= s.slower
	}
	took := s.lat * factor
	if s.slowKind > 0 {
		p := s.kinds[0]
		if now > s.slowFrom && now < s.slowTo {
			p = s.kinds[1]
		}
		if s.random.Float64() < p {
			took = s.slowKind * factor
		}
	}
	quick := min(0.005+0.1*took, 0.1)
	unlucky := s.random.Float64() < s.share
	for _, o := range s.out {
		if now >= o.from && now < o.to {
			switch {
			case o.drains:
				return o.to + took, ok
			case o.kind == hangs:
				return math.Inf(1), hangs
			}
			return now + quick, o.kind
		}
	}
	if unlucky && s.of503 {
		return now + took, f503
	}
	if unlucky {
		return now + took, f500
	}
	if s.minute > 0 {
		if w := int(now / 60); w != s.window {
			s.window, s.used = w, 0
		}
		if s.used++; s.used > s.minute {
			return now + quick, s.status
		}
	}
	if s.rate > 0 {
		s.tokens = min(s.burst, s.tokens+(now-s.lastT)*s.rate)
		if s.lastT = now; s.tokens < 1 {
			return now + quick, s.status
		}
		s.tokens--
	}
	if s.conc > 0 {
		live := s.active[:0]
		for _, a := range s.active {
			if a > now {
				live = append(live, a)
			}
		}
		if s.active = live; len(live) >= s.conc {
			return now + quick, s.status
		}
		s.active = append(s.active, now+took)
	}
	if s.places > 0 {
		first := 0
		for i := range s.free {
			if s.free[i] < s.free[first] {
				first = i
			}
		}
		if !s.forEver && s.free[first] >= deadline {
			return math.Inf(1), hangs
		}
		s.free[first] = max(now, s.free[first]) + took
		return s.free[first], ok
	}
	return now + took, ok
}

// sim is a service, and a door to it, in fake time.
type sim struct {
	mu     sync.Mutex
	began  time.Time
	d      door
	s      *svc
	random *rand.Rand
	paused sec // Retry-After
	row    int // responses with one, without a success between them
	res    result
	debug  func(string, ...any)
}

func (m *sim) now() sec { return time.Since(m.began).Seconds() }

type result struct {
	n, accepted, notSent, unknown, late int
	took                                sec
	requests                            int
}

type scenario struct {
	s        svc
	arrivals []sec
	deadline sec
	possible float64 // of the submits
	loop     int     // records of a loop
	ideal    func(n, c int) sec
	name     string
}

func (m *sim) add(count *int) {
	m.mu.Lock()
	*count++
	m.mu.Unlock()
}

// deadlined is a context with a deadline, and without a timer.
type deadlined struct {
	context.Context
	at time.Time
}

func (d deadlined) Deadline() (time.Time, bool) { return d.at, true }

func (m *sim) backoff(n int, r reply, left sec) sec {
	base, most := 0.2, 5.0
	if r == f429 {
		base = 1
	}
	bound := min(base*math.Pow(2, float64(n)), most)
	if r != f429 {
		bound = min(bound, left/4)
	}
	wait := bound * m.random.Float64()
	if (r == f429 || r == f503) && m.s.retryAfter > 0 {
		wait = max(wait, m.s.retryAfter*(1+0.1*m.random.Float64()))
	}
	return wait
}

// attempt makes one request. Late: there was no response by the deadline.
func (m *sim) attempt(deadline sec, r flow.Request, bulk bool) (how reply, err error) {
	ctx := context.Background()
	if !bulk {
		ctx = deadlined{ctx, m.began.Add(dur(deadline))}
	}
	release, err := m.d.Acquire(ctx, r)
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	now := m.now()
	if bulk {
		deadline += now
	}
	m.res.requests++
	done, how := m.s.arrive(now, deadline)
	m.mu.Unlock()
	if done > deadline {
		done, how = deadline, hangs
	}
	time.Sleep(dur(done-now) + 1)
	res := flow.Result{Took: dur(m.now() - now)}
	switch how {
	case ok:
		res.Says = flow.Success
	case f503, f429:
		res.Says, res.Why = flow.Overload, "503"
	case f500:
		if res.Says, res.Why = flow.Failure, "500"; bulk {
			res.Says = flow.Overload
		}
	case refused:
		res.Says, res.Why = flow.Failure, "refused"
	case hangs:
		res.Says, res.Why = flow.Late, "late"
	}
	m.mu.Lock()
	if how == ok {
		m.row = 0
	} else if m.s.retryAfter > 0 && (how == f429 || how == f503) {
		if m.row++; m.row >= 3 {
			m.paused = max(m.paused, m.now()+m.s.retryAfter)
		}
	}
	m.mu.Unlock()
	release(res)
	return how, nil
}

// awaitPause waits for the end of a Retry-After, or reports that the deadline comes first.
func (m *sim) awaitPause(deadline sec) bool {
	for {
		m.mu.Lock()
		until := m.paused
		m.mu.Unlock()
		left := until - m.now()
		if left <= 0 {
			return true
		}
		if until >= deadline {
			return false
		}
		time.Sleep(dur(left) + 1)
	}
}

func run(t *testing.T, sc scenario, seed uint64, d func(*rand.Rand) door, body func(m *sim)) (res result) {
	synctest.Test(t, func(t *testing.T) {
		m := &sim{began: time.Now(), s: &sc.s, random: rand.New(rand.NewPCG(seed, 13))}
		m.s.seed = seed
		m.s.start()
		m.d = d(m.random)
		body(m)
		m.res.took = m.now()
		res = m.res
	})
	return res
}

// submits makes calls of Submit.
func submits(t *testing.T, sc scenario, seed uint64, d func(*rand.Rand) door) result {
	return run(t, sc, seed, d, func(m *sim) {
		m.res.n = len(sc.arrivals)
		var wg sync.WaitGroup
		for _, a := range sc.arrivals {
			time.Sleep(dur(a - m.now()))
			wg.Go(func() { m.submit(a + sc.deadline) })
		}
		wg.Wait()
	})
}

func (m *sim) submit(deadline sec) {
	began := m.now()
	for n := 0; ; n++ {
		if !m.awaitPause(deadline) {
			m.add(&m.res.notSent)
			return
		}
		how, err := m.attempt(deadline, flow.Request{Retry: n > 0}, false)
		if err != nil {
			m.add(&m.res.notSent)
			return
		}
		switch how {
		case ok:
			m.add(&m.res.accepted)
			if m.now()-began > 1.3*m.s.lat+1 {
				m.add(&m.res.late)
			}
			return
		case f500, f503, hangs:
			m.add(&m.res.unknown)
			return
		}
		m.mu.Lock()
		wait := m.backoff(n, how, deadline-m.now())
		m.mu.Unlock()
		if n >= 3 || m.now()+wait >= deadline {
			m.add(&m.res.notSent)
			return
		}
		time.Sleep(dur(wait) + 1)
	}
}

// loop makes a call of SubmitAll, or of LookupAll, which sends again what fails.
func loop(t *testing.T, sc scenario, seed uint64, d func(*rand.Rand) door, n, concurrency int, again bool) result {
	const timeout, giveUp = 10, 1800
	return run(t, sc, seed, d, func(m *sim) {
		m.res.n = n
		todo, worked := n, 0.0
		var wg sync.WaitGroup
		for range concurrency {
			wg.Go(func() {
				for {
					m.mu.Lock()
					over := todo == 0 || m.now()-worked > giveUp || m.now() > 5*3600
					if !over {
						todo--
					}
					m.mu.Unlock()
					if over {
						return
					}
					m.awaitPause(math.Inf(1))
					for {
						how, err := m.attempt(timeout, flow.Request{Bulk: true}, true)
						if p := (*flow.Pause)(nil); errors.As(err, &p) && m.now()-worked < giveUp {
							time.Sleep(max(time.Until(p.Until), 10*time.Millisecond))
							continue
						}
						m.mu.Lock()
						switch {
						case err == nil && how == ok:
							m.res.accepted++
							worked = m.now()
						case err != nil, again, how == f429, how == refused:
							todo++
						default:
							m.res.unknown++
						}
						m.mu.Unlock()
						break
					}
				}
			})
		}
		wg.Wait()
		m.res.notSent = todo
	})
}
