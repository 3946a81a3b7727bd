package outbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The model is one refund, those who submit it, the network and the service: everything that can
// differ, small enough to look at every world that can come about. A worker and a Submit begin an
// attempt in the same way, so either is a worker here.

const most = 3 // attempts

// Where a request is.
const (
	idle = iota
	marked
	wire
	over
)

// What its worker knows.
const (
	none = iota
	yes
	refused
	unsent
	doubted
	gone // it is written down, or the worker is dead
)

type world struct {
	state    State
	attempts uint8
	doubt    bool // an attempt before the last one may have been recorded
	at, said [most]uint8
	old      [most]bool // the mark is a minute old
	records  uint8      // how often the service has the refund
	words    uint8      // how often somebody said to send it again, rightly or not
	told     uint8      // the ends that callers of Submit were told since somebody had it sent again
}

// The ends that callers are told. What is unknown can still become known.
const (
	toldAccepted = 1 << iota
	toldRejected
)

// assumptions are what the guarantee rests on besides the table.
type assumptions struct {
	fence   bool // a request does not leave when its mark is a minute old
	network bool // a request that left has arrived, or never will, when its mark is a minute old
}

// move does what move does in the database.
func (w world) move(e event) (world, bool) {
	to := target(w.state, e, w.doubt)
	if to == "" {
		return w, false
	}
	w.doubt = doubtAfter(w.doubt, w.state, e)
	w.state = to
	if e == event(Resubmit) {
		w.told = 0
	}
	return w, true
}

var heard = map[uint8]event{yes: eventAccepted, refused: eventRefused, unsent: eventUnsent, doubted: eventDoubted}

// next yields what can happen in a world. Of what people say wrongly, it has what sends a
// refund again; the others can make any state wrong.
func (w world) next(a assumptions, yield func(step string, next world)) {
	do := func(step string, e event) {
		if n, ok := w.move(e); ok {
			yield(step, n)
		}
	}
	if w.attempts < most {
		if n, ok := w.move(eventBegun); ok {
			n.at[n.attempts], n.attempts = marked, n.attempts+1
			yield("a worker begins", n)
		}
	}
	if n, ok := w.move(event(Resubmit)); ok && w.words < most-1 && w.old[w.attempts-1] {
		n.words++
		yield("somebody says: resubmit", n)
	}
	if w.attempts > 0 && w.old[w.attempts-1] {
		do("the mark is buried", eventDoubted)
		if w.records == 0 {
			do("a report does not have it: resubmit", event(Resubmit))
			do("who is asked does not have it", event(NotRecorded))
		}
	}
	if end := map[State]uint8{Accepted: toldAccepted, Rejected: toldRejected}[w.state]; w.told|end != w.told {
		n := w
		n.told |= end
		yield("a caller is told "+string(w.state), n)
	}
	if w.records > 0 {
		do("a report, who is asked, or a webhook has it", event(Recorded))
	}
	for i := range w.attempts {
		step := func(name string, at, said uint8) {
			n := w
			n.at[i] = at
			if n.said[i] == none || said == gone || said == doubted {
				n.said[i] = said
			}
			if name == "is recorded" {
				n.records++
			}
			yield(fmt.Sprint("attempt ", i+1, " ", name), n)
		}
		at, said := w.at[i], w.said[i]
		if !w.old[i] && (!a.network || at != wire) {
			n := w
			n.old[i] = true
			yield(fmt.Sprint("attempt ", i+1, " is a minute old"), n)
		}
		switch {
		case at == marked && said == none:
			step("is not sent", over, unsent)
			if !w.old[i] || !a.fence {
				step("leaves", wire, none)
			}
		case at == wire:
			step("is recorded", over, yes)
			step("is refused", over, refused)
			step("is lost", over, none)
		}
		if at >= wire && said <= refused {
			step("has no clear response", at, doubted)
		}
		if said != gone {
			end := at
			if at == marked {
				end = over
			}
			step("loses its worker", end, gone)
		}
		if e, ok := heard[said]; ok && i+1 == w.attempts {
			n := w
			n.said[i] = gone
			if w.state == Sending || w.state == Unknown {
				if n, ok := n.move(e); ok {
					yield(fmt.Sprint("attempt ", i+1, " is written down"), n)
					continue
				}
			}
			yield(fmt.Sprint("attempt ", i+1, " comes too late"), n)
		}
	}
}

// wrong tells what a world must never be.
func (w world) wrong() string {
	switch {
	case w.records > 1+w.words:
		return "recorded too often"
	case w.state == Accepted && w.records == 0:
		return "accepted, and not recorded"
	case w.state == Rejected && (w.records > 0 || slices.Contains(w.at[:], wire)):
		return "rejected, and recorded or still under way"
	case w.told&toldAccepted != 0 && w.state != Accepted, w.told&toldRejected != 0 && w.state != Rejected:
		return "told one thing and then another"
	}
	return ""
}

// search looks at every world, breadth first. It returns how many there are, and the
// shortest way to a wrong one or to one that nothing leads out of.
func search(a assumptions) (worlds int, counterexample string) {
	type origin struct {
		from world
		step string
	}
	first := world{state: Pending}
	came := map[world]origin{first: {}}
	back := map[world][]world{}
	queue := []world{first}
	path := func(w world, end string) string {
		for w != first {
			end = came[w].step + "\n" + end
			w = came[w].from
		}
		return end
	}
	for i := 0; i < len(queue); i++ {
		w := queue[i]
		if wrong := w.wrong(); wrong != "" {
			return len(came), path(w, wrong)
		}
		w.next(a, func(step string, n world) {
			back[n] = append(back[n], w)
			if _, ok := came[n]; !ok {
				came[n] = origin{w, step}
				queue = append(queue, n)
			}
		})
	}
	good := map[world]bool{}
	var stack []world
	for w := range came {
		if w.state == Accepted || w.state == Rejected || w.attempts == most {
			good[w], stack = true, append(stack, w)
		}
	}
	for len(stack) > 0 {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, b := range back[w] {
			if !good[b] {
				good[b], stack = true, append(stack, b)
			}
		}
	}
	for _, w := range queue {
		if !good[w] {
			return len(came), path(w, "stuck as "+string(w.state))
		}
	}
	return len(came), ""
}

// TestEveryWorld: of all worlds that can come about, none has a refund that is recorded
// more often than somebody said, or that is lost, made up or stuck, or whose callers are told
// different things, unless somebody had it sent again.
func TestEveryWorld(t *testing.T) {
	worlds, counterexample := search(assumptions{fence: true, network: true})
	if counterexample != "" || worlds < 10_000 {
		t.Errorf("%d worlds\n%s", worlds, counterexample)
	}
}

// TestWrongWorlds: without an assumption, or with a mistake in the table, there is a wrong
// world. Package refunds holds the fence, and TestTooEarly that nobody decides before the
// minute is over that the network has.
func TestWrongWorlds(t *testing.T) {
	right := transitions
	defer func() { transitions = right }()
	for _, test := range []struct {
		without assumptions
		mistake transition // in addition, and before the others
		want    string
	}{
		{assumptions{fence: true}, transition{}, "recorded too often"},
		{assumptions{network: true}, transition{}, "recorded too often"},
		{assumptions{}, transition{eventRefused, []State{Sending}, Rejected, Rejected}, "rejected, and recorded"},
		{assumptions{}, transition{eventDoubted, []State{Sending}, Pending, Pending}, "recorded too often"},
		{assumptions{}, transition{eventDoubted, []State{Sending}, Accepted, Accepted}, "accepted, and not recorded"},
		{assumptions{}, transition{eventBegun, []State{Unknown}, Sending, Sending}, "recorded too often"},
		{assumptions{}, transition{eventDoubted, []State{Sending}, Sending, Sending}, "stuck"},
		{assumptions{}, transition{event(Recorded), []State{Accepted}, Unknown, Unknown}, "told one thing"},
	} {
		transitions = append([]transition{test.mistake}, right...)
		_, counterexample := search(assumptions{fence: !test.without.fence, network: !test.without.network})
		if !strings.Contains(counterexample, test.want) {
			t.Errorf("%+v: %q", test, counterexample)
		}
	}
}

// TestMoveIsTheModels: the database makes every transition as the model does, and none of
// an attempt that is not the last.
func TestMoveIsTheModels(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5))
	for _, tr := range transitions[1:] { // the first is the one of take
		for _, from := range tr.from {
			for _, doubt := range []bool{false, true} {
				s.set(`UPDATE outbox_refund SET state = $1, attempts = 2, doubtful = $2`, from, doubt)
				late, err := move(t.Context(), s.box, &claim{Row: 1, Attempt: 1, Doubtful: doubt}, from, tr.event, nil)
				if late || err != nil {
					t.Errorf("an earlier attempt that is %s: %v, %v", from, late, err)
				}
				done, err := move(t.Context(), s.box, &claim{Row: 1, Attempt: 2, Doubtful: doubt}, from, tr.event, nil)
				want, _ := world{state: from, doubt: doubt}.move(tr.event)
				got, found := one[struct {
					State    State
					Doubtful bool
				}](t.Context(), s.box, `SELECT state, doubtful FROM outbox_refund`)
				if !done || errors.Join(err, found) != nil || got.State != want.state || got.Doubtful != want.doubt {
					t.Errorf("%q of %s, doubtful: %v, leads to %+v, want %+v; %v, %v, %v", tr.event, from, doubt, got, want, done, err, found)
				}
			}
		}
	}
}
