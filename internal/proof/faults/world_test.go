package faults

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// An invariant is what must hold after every schedule.
type invariant string

const (
	// Refunds.
	doubled invariant = "doubled" // a refund is recorded once at most
	outcome invariant = "outcome" // what the caller was told is what was recorded

	// Results.
	wrongAnswer invariant = "wrong answer" // an answer is the one to what was asked
	wrongBytes  invariant = "wrong bytes"  // a download is complete and unchanged, or fails
	untyped     invariant = "untyped"      // a failure has its package's type and a condition
	miscounted  invariant = "miscounted"   // the attempts reported are those made
	swallowed   invariant = "swallowed"    // what the caller's own code throws reaches it, and nothing else does

	// Bounds.
	unended     invariant = "not ended"   // once the faults have ended, everything ends well in time
	overdue     invariant = "overdue"     // every call ends by its deadline
	overLimit   invariant = "over limit"  // no more requests at once than the call may make
	tooOften    invariant = "too often"   // a call makes no more attempts than its setting
	resent      invariant = "resent"      // nothing arrives more often than it was sent
	leaked      invariant = "leaked"      // no goroutine, connection or body is left
	unreachable invariant = "unreachable" // and the harness itself is sound
)

type violation struct {
	invariant invariant
	text      string
}

func (v violation) String() string { return fmt.Sprintf("%s: %s", v.invariant, v.text) }

// A world is one schedule while it runs.
type world struct {
	*schedule
	began   time.Time
	service *service
	network *network
	wire    *wire

	mu         sync.Mutex
	violations []violation
	history    []string
	waits      map[string]int // of the library, by call
	questions  map[string]int // for a token, by call
	tally      tally
	threw      bool   // a part of the caller's did
	files      string // a directory
}

// A tally counts what happened, to show that a run met what it is meant to meet.
type tally map[string]int

func (t tally) add(other tally) {
	for name, n := range other {
		t[name] += n
	}
}

func (w *world) violate(i invariant, format string, args ...any) {
	w.note("VIOLATION "+string(i)+": "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, violation{i, fmt.Sprintf(format, args...)})
}

func (w *world) note(format string, args ...any) {
	line := fmt.Sprintf("%12s  "+format, append([]any{time.Since(w.began)}, args...)...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, line)
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally[what]++
}

func (w *world) String() string {
	return fmt.Sprintf("%v\n%s", w.schedule, strings.Join(w.history, "\n"))
}

// run plays a schedule in a bubble of its own, which ends with no goroutine left
// or panics.
func run(t *testing.T, s *schedule) (w *world) {
	w = &world{schedule: s, tally: tally{}, waits: map[string]int{}, questions: map[string]int{}}
	defer func() {
		if p := recover(); p != nil {
			w.violations = append(w.violations, violation{leaked, fmt.Sprint(p)})
		}
	}()
	defer func() { os.RemoveAll(w.files) }()
	synctest.Test(t, func(*testing.T) {
		w.began = time.Now()
		s.age = func() time.Duration { return time.Since(w.began) }
		w.service = newService(w)
		w.network = newNetwork(w)
		w.wire = newWire(w)
		w.workload.play(w)
		w.settle()
	})
	return w
}

// What nobody waits for any more ends within these: a dial, and the request of a
// loader that all have left.
const (
	longestDial = 10 * time.Second
	longestLeft = time.Minute
)

// settle ends the schedule when all its calls have returned, and looks for what
// they left.
func (w *world) settle() {
	time.Sleep(longestDial + longestLeft)
	if w.parts.does == hangs {
		time.Sleep(mostMisdeeds * longestHang)
	}
	w.network.transport.CloseIdleConnections()
	synctest.Wait()
	if open := w.network.open.Load(); open != 0 {
		w.violate(leaked, "%d connections are open", open)
	}
	w.wire.settle()
	w.service.settle()
	w.network.close()
}

// client is what a caller's program hands to the library.
func (w *world) client() *http.Client {
	simulation := &transport.Simulation{RoundTripper: w.wire, Jitter: w.jitter}
	if w.spoiled != nil {
		simulation.RoundTripper = spoiled{w.spoiled, w.wire}
	}
	return &http.Client{Transport: simulation}
}

const baseURL = "http://faults.invalid/base"
