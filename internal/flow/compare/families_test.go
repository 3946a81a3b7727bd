package compare

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/flow"
	old "github.com/carddata/carddata-go/internal/oldflow"
)

var (
	draws = flag.Int("draws", 1, "of each family")
	only  = flag.String("only", "", "families that contain it")
	uses  = flag.String("uses", "submit", "")
	salt  = flag.Uint64("salt", 77, "")
	from  = flag.Int("from", 0, "the first draw")
	each  = flag.Bool("each", false, "print each draw")
	which = flag.String("windows", "new", "")
)

type variant struct {
	name string
	make func(use string) func(*rand.Rand) door
}

func jitter(random *rand.Rand) func(d dtime) dtime {
	return func(below dtime) dtime { return dtime(random.Int64N(int64(max(1, below)))) }
}

func variants() []variant {
	all := []variant{
		{"hand", func(string) func(*rand.Rand) door { return func(*rand.Rand) door { return hand{} } }},
		{"old", func(use string) func(*rand.Rand) door {
			return func(r *rand.Rand) door { return was{old.New(use == "lookups", jitter(r))} }
		}},
		{"new", func(use string) func(*rand.Rand) door {
			return func(r *rand.Rand) door { return flow.New(jitter(r)) }
		}},
	}
	if *which == "" {
		return all
	}
	return slices.DeleteFunc(all, func(v variant) bool { return !slices.Contains(strings.Split(*which, ","), v.name) })
}

type dtime = time.Duration

type family struct {
	name string
	draw func(r *rand.Rand) scenario
}

func between(r *rand.Rand, least, most float64) float64 {
	return least * math.Exp(r.Float64()*math.Log(most/least))
}
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

const most = 5000

// stream draws arrivals: even or random.
func stream(r *rand.Rand, rate, during sec) (at []sec) {
	even := r.IntN(2) == 0
	during = min(during, most/rate)
	for t := 0.0; t < during; {
		at = append(at, t)
		if even {
			t += 1 / rate
		} else {
			t += r.ExpFloat64() / rate
		}
	}
	return at
}

func spread(r *rand.Rand) float64 { return pick(r, 0, 0.2, 0.5, -0.3, -0.5) }

func families() []family {
	healthy := func(r *rand.Rand, rate, during sec) (sc scenario) {
		sc.s = svc{lat: between(r, 0.02, 8), spread: spread(r)}
		sc.deadline = pick(r, 2.5, 3, 5, 10) * sc.s.lat
		sc.arrivals = stream(r, rate, during)
		sc.possible = float64(len(sc.arrivals))
		sc.loop = 2000
		sc.ideal = func(n, c int) sec { return float64(n) / float64(c) * sc.s.lat }
		sc.name = fmt.Sprintf("lat %.2f spread %v rate %.1f deadline %.2f", sc.s.lat, sc.s.spread, rate, sc.deadline)
		return sc
	}
	quick := func(r *rand.Rand, rate, during sec) scenario { // at most 2 s, deadlines as users have them
		sc := healthy(r, rate, during)
		sc.s.lat = between(r, 0.03, 2)
		sc.deadline = max(5*sc.s.lat, pick(r, 2.0, 5, 10, 30))
		sc.name = fmt.Sprintf("lat %.2f spread %v rate %.1f deadline %.1f", sc.s.lat, sc.s.spread, rate, sc.deadline)
		return sc
	}
	limited := func(status reply, conc bool) func(r *rand.Rand) scenario {
		return func(r *rand.Rand) scenario {
			load := between(r, 0.5, 3)
			rate := between(r, 10, 200)
			sc := quick(r, load*rate, 240)
			sc.s.lat = between(r, 0.02, 0.5)
			capacity := rate
			if conc {
				sc.s.conc = 1 + r.IntN(50)
				capacity = float64(sc.s.conc) / sc.s.lat
				if capacity > 200 {
					sc.s.lat = float64(sc.s.conc) / 200
					capacity = 200
				}
				sc.arrivals = stream(r, load*capacity, 240)
			} else {
				sc.s.rate, sc.s.burst = rate, pick(r, 1, rate/4, rate)
			}
			sc.s.status = status
			if status == f429 || r.IntN(3) == 0 {
				sc.s.retryAfter = pick(r, 0, 1.0)
			}
			sc.deadline = pick(r, 2.0, 5, 10, 30) + sc.s.lat
			last := sc.arrivals[len(sc.arrivals)-1]
			sc.possible = min(float64(len(sc.arrivals)), capacity*(last+sc.deadline))
			s := sc.s
			sc.ideal = func(n, c int) sec {
				at := float64(c) / s.lat
				if conc {
					at = min(at, float64(s.conc)/s.lat)
				} else {
					at = min(at, s.rate)
				}
				return float64(n) / at
			}
			sc.name = fmt.Sprintf("capacity %.0f load %.2f lat %.3f deadline %.1f retryAfter %v conc %d burst %.0f", capacity, load, sc.s.lat, sc.deadline, sc.s.retryAfter, sc.s.conc, sc.s.burst)
			return sc
		}
	}
	share := func(p float64) func(r *rand.Rand) scenario {
		return func(r *rand.Rand) scenario {
			sc := quick(r, between(r, 0.5, 50), 600)
			sc.s.share = p
			sc.possible *= 1 - p
			return sc
		}
	}
	down := func(kind reply) func(r *rand.Rand) scenario {
		return func(r *rand.Rand) scenario {
			long := between(r, 5, 600)
			sc := quick(r, between(r, 0.5, 30), 60+long+120)
			last := sc.arrivals[len(sc.arrivals)-1]
			from := min(30, last/4)
			long = min(long, last/2)
			sc.s.out = []outage{{from: from, to: from + long, kind: kind}}
			sc.possible *= 1 - long/last
			ideal := sc.ideal
			sc.ideal = func(n, c int) sec { return ideal(n, c) + long }
			sc.name += fmt.Sprintf(" outage %.0f", long)
			return sc
		}
	}
	return []family{
		{"healthy", func(r *rand.Rand) scenario { return healthy(r, between(r, 1, 100), 120) }},
		{"bursts", func(r *rand.Rand) scenario {
			sc := healthy(r, 1, 1)
			sc.deadline = max(sc.deadline, 3*sc.s.lat)
			sc.arrivals = nil
			gap := between(r, 5, 20) * sc.s.lat
			for i := range 10 {
				for range int(between(r, 1, 500)) {
					sc.arrivals = append(sc.arrivals, float64(i)*gap)
				}
			}
			sc.possible = float64(len(sc.arrivals))
			return sc
		}},
		{"rate 503", limited(f503, false)},
		{"rate 429", limited(f429, false)},
		{"places 503", limited(f503, true)},
		{"rate 500", limited(f500, false)},
		{"places 500", limited(f500, true)},
		{"queue <=1", queue(healthy, 0.8, 1)},
		{"queue >1", queue(healthy, 1.05, 3)},
		{"1% fail", share(0.01)},
		{"5% fail", share(0.05)},
		{"10% fail", share(0.1)},
		{"20% fail", share(0.2)},
		{"30% fail", share(0.3)},
		{"5% 503", share503(share(0.05))},
		{"10% 503", share503(share(0.1))},
		{"33% 503", share503(share(0.33))},
		{"down 503", down(f503)},
		{"down refused", down(refused)},
		{"down hangs", down(hangs)},
		{"slower", func(r *rand.Rand) scenario {
			sc := quick(r, between(r, 1, 50), 300)
			sc.s.lat = between(r, 0.03, 1)
			last := sc.arrivals[len(sc.arrivals)-1]
			sc.s.slower, sc.s.slowFrom = between(r, 3, 10), last/4
			sc.s.slowTo = sc.s.slowFrom + between(r, 10, 120)
			sc.deadline = max(pick(r, 2.0, 5, 10, 30), 2.5*sc.s.lat*sc.s.slower)
			sc.name += fmt.Sprintf(" times %.1f deadline %.1f", sc.s.slower, sc.deadline)
			s := sc.s
			sc.ideal = func(n, c int) sec { return float64(n)/float64(c)*s.lat + (s.slowTo-s.slowFrom)*(1-1/s.slower) }
			return sc
		}},
		{"stops", func(r *rand.Rand) scenario {
			sc := quick(r, between(r, 1, 50), 240)
			last := sc.arrivals[len(sc.arrivals)-1]
			from, long := last/4, min(between(r, 2, 30), last/3)
			sc.s.out = []outage{{from: from, to: from + long, kind: hangs, drains: r.IntN(2) == 0}}
			if sc.possible *= 1 - long/last; sc.s.out[0].drains {
				sc.possible = float64(len(sc.arrivals)) * (1 - max(0, long-sc.deadline)/last)
			}
			ideal := sc.ideal
			sc.ideal = func(n, c int) sec { return ideal(n, c) + long }
			sc.name += fmt.Sprintf(" stop %.0f drains %v", long, sc.s.out[0].drains)
			return sc
		}},
		{"restarts", func(r *rand.Rand) scenario {
			sc := quick(r, between(r, 1, 30), 300)
			last := sc.arrivals[len(sc.arrivals)-1]
			total := 0.0
			kind := pick(r, refused, f503)
			for t := 20.0; t < last; t += between(r, 20, 60) {
				long := between(r, 1, 5)
				total += long
				sc.s.out = append(sc.s.out, outage{from: t, to: t + long, kind: kind})
			}
			sc.possible *= max(0.1, 1-total/last)
			return sc
		}},
	}
}

func queue(healthy func(r *rand.Rand, rate, during sec) scenario, least, mostLoad float64) func(r *rand.Rand) scenario {
	return func(r *rand.Rand) scenario {
		sc := healthy(r, 1, 1)
		sc.s.lat = between(r, 0.05, 2)
		sc.s.places = int(between(r, 1, 100))
		sc.s.spread = pick(r, 0, 0.3, -0.5)
		sc.s.forEver = r.IntN(2) == 0
		load := between(r, least, mostLoad)
		capacity := float64(sc.s.places) / sc.s.lat
		sc.arrivals = stream(r, load*capacity, max(120, 100*sc.s.lat))
		sc.deadline = between(r, 4, 20) * sc.s.lat
		last := sc.arrivals[len(sc.arrivals)-1]
		sc.possible = min(float64(len(sc.arrivals)), capacity*(last+sc.deadline))
		s := sc.s
		sc.loop = min(2000, 200*s.places)
		sc.ideal = func(n, c int) sec { return float64(n) / float64(min(c, s.places)) * s.lat }
		sc.name = fmt.Sprintf("lat %.2f spread %v places %d load %.2f deadline %.2f forEver %v", s.lat, s.spread, s.places, load, sc.deadline, s.forEver)
		return sc
	}
}

type row struct {
	family, use, window, name string
	draw                      int
	accepted                  float64 // of what is possible
	notSent, unknown, late    float64 // of all
	slow                      float64 // times the ideal time, of loops
}

func TestCompare(t *testing.T) {
	var rows []row
	var mu sync.Mutex
	var work sync.WaitGroup
	jobs := make(chan func())
	for range 2 {
		work.Go(func() {
			for job := range jobs {
				job()
			}
		})
	}
	for _, f := range families() {
		if !strings.Contains(f.name, *only) {
			continue
		}
		for draw := *from; draw < *from+*draws; draw++ {
			for _, use := range strings.Split(*uses, ",") {
				n := 1
				if use != "submit" {
					n = 2 // fewer draws
				}
				if draw%n != 0 {
					continue
				}
				for _, v := range variants() {
					jobs <- func() {
						newScenario := func() scenario {
							sc := f.draw(rand.New(rand.NewPCG(uint64(draw), *salt)))
							if use == "loader" { // a checkout
								sc.deadline = min(sc.deadline, max(2.5*sc.s.lat*max(1, sc.s.slower), []float64{0.5, 1, 3}[draw/2%3]))
							}
							return sc
						}
						sc := newScenario()
						add := func(use string, r result, ideal sec) {
							n := float64(r.n)
							possible := n
							if !strings.HasPrefix(use, "loop") && !strings.HasPrefix(use, "lookups") {
								possible = sc.possible
							}
							mu.Lock()
							defer mu.Unlock()
							if *each {
								fmt.Printf("%-8s %-6s %2d %s: accepted %.0f not sent %.0f unknown %.1f late %.1f time %.2f\n", use, v.name, draw, sc.name, 100*float64(r.accepted)/possible, 100*float64(r.notSent)/n, 100*float64(r.unknown)/n, 100*float64(r.late)/n, r.took/max(ideal, 1e-9))
							}
							rows = append(rows, row{f.name, use, v.name, sc.name, draw, float64(r.accepted) / possible, float64(r.notSent) / n, float64(r.unknown) / n, float64(r.late) / n, r.took / max(ideal, 1e-9)})
						}
						switch use {
						case "submit":
							add("submit", submits(t, sc, uint64(draw), v.make("submit")), 1)
						case "loop":
							for _, c := range []int{8, 64} {
								n := max(200, min(sc.loop, int(300*float64(c)/sc.s.lat)))
								if len(sc.s.out) > 0 || sc.s.slower > 0 { // it has to last
									to := sc.s.slowTo + 30
									for _, o := range sc.s.out[:min(1, len(sc.s.out))] {
										to = o.from + 30
									}
									n = max(n, min(20_000, int(to*float64(c)/sc.s.lat)))
								}
								sc = newScenario()
								add(fmt.Sprint("loop ", c), loop(t, sc, uint64(draw), v.make("loop"), n, c, false), sc.ideal(n, c))
								sc = newScenario()
								add(fmt.Sprint("lookups ", c), loop(t, sc, uint64(draw), v.make("lookups"), n, c, true), sc.ideal(n, c))
							}
						}
					}
				}
			}
		}
	}
	close(jobs)
	work.Wait()
	print(t, rows)
}

// print prints the mean and the worst of each family.
func print(t *testing.T, rows []row) {
	type key struct{ use, family string }
	var keys []key
	sums := map[key]map[string][]row{}
	for _, f := range families() {
		for _, use := range []string{"submit", "loop 8", "loop 64", "lookups 8", "lookups 64", "loader"} {
			keys = append(keys, key{use, f.name})
		}
	}
	for _, r := range rows {
		k := key{r.use, r.family}
		if sums[k] == nil {
			sums[k] = map[string][]row{}
		}
		sums[k][r.window] = append(sums[k][r.window], r)
	}
	slices.SortStableFunc(keys, func(a, b key) int { return strings.Compare(a.use, b.use) })
	for _, k := range keys {
		line := fmt.Sprintf("%-11s%-13s", k.use, k.family)
		for _, w := range []string{"hand", "old", "new"} {
			all := sums[k][w]
			if len(all) == 0 {
				continue
			}
			var accepted, notSent, unknown, slow float64
			least, most, slowest := math.Inf(1), 0.0, 0.0
			for _, r := range all {
				n := float64(len(all))
				accepted, notSent, unknown, slow = accepted+100*r.accepted/n, notSent+100*r.notSent/n, unknown+100*r.unknown/n, slow+r.slow/n
				least, most, slowest = min(least, 100*r.accepted), max(most, 100*r.unknown), max(slowest, r.slow)
			}
			line += fmt.Sprintf(" | %-6s accepted %3.0f, least %3.0f; not sent %2.0f; unknown %4.1f, most %2.0f", w, accepted, least, notSent, unknown, most)
			if k.use != "submit" && k.use != "loader" {
				line += fmt.Sprintf("; time %.2f, most %.2f", slow, slowest)
			}
		}
		if sums[k] != nil {
			t.Log(line)
		}
	}
}

func share503(f func(r *rand.Rand) scenario) func(r *rand.Rand) scenario {
	return func(r *rand.Rand) scenario {
		sc := f(r)
		sc.s.of503 = true
		return sc
	}
}
