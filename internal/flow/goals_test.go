package flow

import (
	"flag"
	"fmt"
	"math"
	"testing"
	"time"
)

var seeds = flag.Int("seeds", 1, "hundreds of random services; most of twice as many draws and one more must meet each goal")

// A goal is what the window must reach at a kind of service.
type goal struct {
	name    string
	service func(seed uint64) service
	load    load
	best    time.Duration // what somebody needs who knows the service
	failed  float64       // share of the requests, at most
	took    float64       // times best, at most; 0: it does not end in time, and gives up
}

// TestGoals holds what the package docs of bins and refunds say of services between works
// and down. A goal is met if most draws meet it: one alone may be bad luck. The seeds are fixed.
// With -v it prints the table.
func TestGoals(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	most := *seeds + 1
	for _, g := range goals() {
		met, missed := 0, 0
		for seed := uint64(1); met < most && missed < most; seed++ {
			r := run(t, seed, g.load, g.service(seed))
			failed, took := float64(r.failed)/float64(g.load.requests*max(1, g.load.windows)), r.took.Seconds()/g.best.Seconds()
			line := fmt.Sprintf("%s, seed %d: failed %.4f, in %.2f of the time, %d left", g.name, seed, failed, took, r.left)
			if failed > g.failed || g.took > 0 && took > g.took || (r.left == 0) != (g.took > 0) {
				missed++
				t.Log("missed: " + line)
			} else {
				met++
				t.Log(line)
			}
		}
		if missed == most {
			t.Errorf("%s: most draws miss it; it is at most %v failed, in %v of the time", g.name, g.failed, g.took)
		}
	}
}

// TestFullSpeedAgain lets a service work only now and then for ten minutes, or ban the window
// again and again for longer. Minutes after it works again, the window is at full speed, or in
// half an hour if a share still fails, or if there were bans. One in four may take longer, up to
// most. Its seeds are fixed.
func TestFullSpeedAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	const most = 50 * time.Minute
	check := func(name string, l load, bad, within time.Duration, s func(seed uint64) service) {
		l.requests, l.until, l.jitter, l.concurrency, l.giveUp = l.requests+150_000, bad, 0.4, 8, -1
		worst, over := time.Duration(0), 0
		for i := range *seeds {
			seed := uint64(i + 1)
			took := run(t, seed, l, s(seed)).fullSpeed(bad)
			if worst = max(worst, took); took > within {
				over++
			}
		}
		if t.Logf("%s: %v, %d over %v", name, worst, over, within); 4*over > *seeds || worst > most {
			t.Errorf("%s: at full speed after %v, %d over %v", name, worst, over, within)
		}
	}
	for _, s := range []struct {
		up, down time.Duration
		failed   float64 // share, while it is up
		after    float64 // share, once it works for good
	}{
		{up: 10 * time.Second, down: 30 * time.Second},
		{up: 2 * time.Second, down: 20 * time.Second},
		{up: time.Minute, down: time.Minute},
		{up: 5 * time.Second, down: 5 * time.Second, failed: 0.3},
		{up: 20 * time.Second, down: 5 * time.Second, failed: 0.5},
		{up: time.Hour, failed: 0.9},
		{up: time.Hour, failed: 0.6},
		{up: 10 * time.Second, down: 30 * time.Second, failed: 0.1, after: 0.1},
		{up: time.Minute, down: time.Minute, failed: 0.1, after: 0.1},
		{up: 20 * time.Second, down: 5 * time.Second, failed: 0.02, after: 0.02},
	} {
		const bad = 10 * time.Minute
		within := 5 * time.Minute
		if s.after > 0 {
			within = 35 * time.Minute
		}
		for _, patient := range []bool{false, true} {
			name := fmt.Sprintf("patient %v, up %v, down %v, %v fail, then %v", patient, s.up, s.down, s.failed, s.after)
			check(name, load{again: true, patient: patient}, bad, within,
				func(seed uint64) service { return nowAndThen(seed, bad, s.up, s.down, s.failed, s.after) })
		}
	}
	for _, length := range []time.Duration{10 * time.Second, time.Minute} {
		for _, lifted := range []time.Duration{30 * time.Minute, 2 * time.Hour} {
			check(fmt.Sprintf("bans of %v for %v", length, lifted), load{requests: 20 * int(lifted.Seconds())}, lifted, 30*time.Minute, func(uint64) service {
				banned := ban(bucket(20, 20), length)
				return func(now time.Duration, n int) bool { return now < lifted && banned(now, n) }
			})
		}
	}
}

// fullSpeed returns how long after a time it first was at full speed.
func (r report) fullSpeed(after time.Duration) time.Duration {
	for i := range r.accepted {
		if r.atFullSpeed(i, after) {
			return r.accepted[i] - after
		}
	}
	return math.MaxInt64
}

// atFullSpeed reports whether a second after a time ends with a request, in which most of what
// is possible was accepted.
func (r report) atFullSpeed(request int, after time.Duration) bool {
	const most = 100
	return request >= most && r.accepted[request-most] >= after && r.accepted[request]-r.accepted[request-most] <= time.Second
}

const records = 20_000

// goals lists them for refunds, whose failures are final, and for batches of cards, which
// are sent again. These batches are few: a Retry-After or a pause while the limit is being
// found costs more of their time, and they have bounds of their own.
func goals() (all []goal) {
	for _, c := range []int{8, 64} {
		refunds := load{requests: records, jitter: 0.4, concurrency: c}
		batches := load{requests: records / 10, jitter: 0.4, concurrency: c, again: true, patient: true}
		add := func(name string, l load, perSecond, failed, took float64, s func(seed uint64) service) {
			kind := "refunds"
			if l.patient {
				kind = "batches"
			}
			best := time.Duration(float64(l.requests) / perSecond * float64(time.Second))
			all = append(all, goal{fmt.Sprintf("%s, %s, concurrency %d", name, kind, c), s, l, best, failed, took})
		}
		full := float64(c) / roundTrip.Seconds()
		same := func(s func() service) func(uint64) service { return func(uint64) service { return s() } }
		rested := func(l load) load {
			l.retryAfter = time.Second
			return l
		}

		for _, k := range []int{1, 3, 8, 14, 30} {
			name, s, perSecond := fmt.Sprintf("%d in flight", k), same(func() service { return atMost(k) }), float64(min(k, c))/roundTrip.Seconds()
			add(name, refunds, perSecond, 0.01, 1.25, s)
			add(name, batches, perSecond, 0.15, 1.5, s)
		}
		for _, b := range []struct {
			rate  float64
			burst int
		}{{5, 1}, {5, 20}, {20, 1}, {20, 20}, {50, 5}, {50, 20}} {
			name, s := fmt.Sprintf("%v a second, burst %d", b.rate, b.burst), same(func() service { return bucket(b.rate, b.burst) })
			add(name, refunds, b.rate, 0.02, 1/0.85, s)
			add(name, batches, b.rate, 0.15, 1.22, s)
			add(name+", Retry-After", rested(refunds), b.rate, 0.02, 1.2, s)
			add(name+", Retry-After", rested(batches), b.rate, 0.15, 1.54, s)
		}
		for _, w := range []struct {
			span     time.Duration
			most     int
			requests int
		}{{time.Minute, 12, 480}, {time.Minute, 60, 2000}, {time.Minute, 600, 20_000}, {10 * time.Second, 100, 20_000}, {time.Second, 10, 20_000}} {
			for name, s := range map[string]func() service{"": func() service { return window(w.span, w.most) }, ", sliding": func() service { return sliding(w.span, w.most) }} {
				limited, limitedBatches := refunds, batches
				limited.requests, limitedBatches.requests = w.requests, w.requests
				name, perSecond := fmt.Sprintf("%d in %v%s", w.most, w.span, name), float64(w.most)/w.span.Seconds()
				add(name, limited, perSecond, 0.18, 1/0.6, same(s))
				add(name, limitedBatches, perSecond, 0.25, 1/0.6, same(s))
			}
		}
		long := batches
		long.requests = records
		for _, b := range []struct {
			length   time.Duration
			requests int
			took     float64
		}{{10 * time.Second, records, 1.67}, {time.Minute, records, 2}, {time.Minute, 20 * 3600, 1.67}} {
			s := same(func() service { return ban(bucket(20, 20), b.length) })
			banned, bannedBatches := refunds, batches
			banned.requests, bannedBatches.requests = b.requests, b.requests
			name := fmt.Sprintf("20 a second or a ban for %v, %d", b.length, b.requests)
			add(name, banned, 20, 0.01, b.took, s)
			add(name, bannedBatches, 20, 0.01, b.took, s)
		}
		for _, p := range []float64{0.01, 0.04, 0.1} {
			s := func(seed uint64) service { return share(seed, p) }
			took := map[int]float64{8: 1.2, 64: 1.6}[c]
			add(fmt.Sprintf("%v at random", p), refunds, full, 1.1*p, took, s)
			add(fmt.Sprintf("%v at random", p), long, full, 1.3*p, took, s)
		}
		for _, p := range []float64{0.3, 0.5, 0.7, 1} {
			s := func(seed uint64) service { return share(seed, p) }
			add(fmt.Sprintf("%v at random", p), refunds, full, 0.03, 0, s)
			if p < 1 {
				add(fmt.Sprintf("%v at random", p), batches, records/10/(15*time.Minute).Seconds(), 2.6, 1, s)
			}
		}
		down := same(func() service {
			return func(now time.Duration, _ int) bool { return now > 500*time.Millisecond && now < 10*time.Minute }
		})
		add("down for ten minutes", refunds, records/(600+records/full), 0.01, 1.2, down)
		healthy := same(func() service { return share(0, 0) })
		add("healthy", refunds, full, 0, 1.02, healthy)
		add("healthy", batches, full, 0, 1.15, healthy)
		hours := refunds
		hours.requests = 100_000
		moved := map[int]float64{8: 100_000.0 / 910, 64: 100_000.0 / 507}[c]
		add("a capacity that moves", hours, moved, 0.003, 1.6, same(func() service { return moving(2*time.Minute, 8, 2, 16, 1, 64) }))
		two := load{requests: 5000, jitter: 0.4, concurrency: c, windows: 2}
		add("2 processes at 5 a second, burst 1", two, 2.5, 0.06, 1.6, same(func() service { return bucket(5, 1) }))
		for windows, took := range map[int]float64{2: 1.25, 4: 1.6} {
			several := load{requests: records / windows, jitter: 0.4, concurrency: c, windows: windows}
			add(fmt.Sprintf("%d processes at one limit", windows), several, 20/float64(windows), 0.03*float64(windows), took, same(func() service { return bucket(20, 5) }))
		}
	}
	return all
}
