// Package compare is the test of the window of package flow. It simulates services that users meet, and
// what becomes of their calls there, by hand and with a window.
//
//	go test ./internal/flow/compare -v -run 'TestSubmit/a_queue' -draws 16 -calls 5000 -hand
package compare

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

var (
	draws = flag.Int("draws", 4, "of each family")
	first = flag.Int("first", 0, "the number of the first draw")
	salt  = flag.Uint64("salt", 1, "draws others")
	most  = flag.Int("calls", 1000, "in each draw, at most")
	hand  = flag.Bool("hand", false, "by hand, too")
	each  = flag.Bool("each", false, "log each draw")
)

// enoughDraws have a mean that says something: they are held to the goals. With fewer draws or shorter
// ones the bounds are coarse.
const (
	enoughDraws = 16
	enoughCalls = 5000
	coarse      = 20 // per cent of the calls
)

// A score says what became of the calls of a draw, in per cent.
type score struct {
	accepted float64 // of those that could be
	notSent  float64
	unknown  float64
	late     float64 // waited in the client for more than a second
	time     float64 // of a bulk call, in times of the best possible
	back     sec     // from the end of an outage to the next call that was accepted; +Inf: none was
}

func (s score) String() string {
	return fmt.Sprintf("accepted %5.1f, not sent %5.1f, unknown %5.1f, late %5.1f, time %5.2f, back after %4.1f s", s.accepted, s.notSent, s.unknown, s.late, s.time, s.back)
}

// play plays a draw of a family with calls of Submit, or with one call of SubmitAll that has so many
// in flight.
func play(t *testing.T, f family, number, inFlight int, byHand bool) (score, string) {
	s := f.draw(draw{rand.New(rand.NewPCG(uint64(number), *salt))})
	clients, possible := submits, s.possible
	if inFlight > 0 {
		records := s.records(inFlight)
		clients, possible = submitsAll(records, inFlight), float64(records)
	}
	r := run(t, s, uint64(number), byHand, clients)
	ofAll := func(n int) float64 { return 100 * float64(n) / float64(r.calls) }
	of := score{100 * float64(r.accepted) / possible, ofAll(r.notSent), ofAll(r.unknown), ofAll(r.late), 0, r.back}
	if inFlight > 0 {
		of.accepted, of.time = ofAll(r.accepted), r.took/s.best(s.records(inFlight), inFlight)
	}
	return of, s.about
}

// plays plays all draws of a family, and returns the mean score and the worst of each kind.
func plays(t *testing.T, f family, inFlight int, byHand bool) (mean, worst score) {
	worst.accepted = math.Inf(1)
	n, backs := float64(*draws), 0.0
	for i := *first; i < *first+*draws; i++ {
		s, about := play(t, f, i, inFlight, byHand)
		if *each {
			t.Logf("%3d: %v: %s", i, s, about)
		}
		mean.accepted += s.accepted / n
		mean.notSent += s.notSent / n
		mean.unknown += s.unknown / n
		mean.late += s.late / n
		mean.time += s.time / n
		if !math.IsInf(s.back, 1) {
			mean.back += s.back
			backs++
			worst.back = max(worst.back, s.back)
		}
		worst.accepted = min(worst.accepted, s.accepted)
		worst.notSent = max(worst.notSent, s.notSent)
		worst.unknown = max(worst.unknown, s.unknown)
		worst.late = max(worst.late, s.late)
		worst.time = max(worst.time, s.time)
	}
	mean.back /= max(1, backs)
	who := "window"
	if byHand {
		who = "by hand"
	}
	t.Logf("%-8s mean  %v", who, mean)
	t.Logf("%-8s worst %v", who, worst)
	return mean, worst
}

func TestSubmit(t *testing.T) {
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if *hand {
				plays(t, f, 0, true)
			}
			mean, worst := plays(t, f, 0, false)
			g := f.submit
			if *draws < enoughDraws || *most < enoughCalls {
				g.accepted, g.unknown, g.late, g.least, g.most = g.accepted-coarse, g.unknown+coarse, g.late+2*coarse, 0, 100
			}
			if mean.accepted < g.accepted || mean.unknown > g.unknown || mean.late > g.late {
				t.Errorf("%v\nwant on average at least %.0f accepted, at most %.1f unknown and %.0f late", mean, g.accepted, g.unknown, g.late)
			}
			if worst.accepted < g.least || worst.unknown > g.most {
				t.Errorf("%v\nwant in the worst draw at least %.0f accepted, and at most %.0f unknown", worst, g.least, g.most)
			}
		})
	}
}

func TestSubmitAll(t *testing.T) {
	if testing.Short() || *draws < enoughDraws {
		t.Skip("only with -draws 16: it takes as long as all of Submit")
	}
	for _, f := range families() {
		if f.bulk == (bulkGoal{}) {
			continue
		}
		for _, inFlight := range []int{8, 64} {
			t.Run(fmt.Sprintf("%s, %d in flight", f.name, inFlight), func(t *testing.T) {
				t.Parallel()
				if *hand {
					plays(t, f, inFlight, true)
				}
				mean, worst := plays(t, f, inFlight, false)
				g := f.bulk
				if mean.unknown > g.unknown || mean.time > g.time {
					t.Errorf("%v\nwant on average at most %.1f unknown, and %.1f of the time", mean, g.unknown, g.time)
				}
				if worst.time > g.longest {
					t.Errorf("%v\nwant in the worst draw at most %.1f of the time", worst, g.longest)
				}
			})
		}
	}
}
