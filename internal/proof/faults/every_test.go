package faults

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"log"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var every = flag.Int("every", 1, "try every sequence with up to this many faults in one call; 0: with any number")

// A sequence decides a schedule without chance: what befalls a dial or a request is its
// choice of that name. Without a choice nothing befalls it.
type sequence struct {
	dials  []dialFault
	faults []fault
	only   string // the call that meets faults, and the dials ahead of it; "" is every call

	choices []choice // in the order in which they were met

	mu    sync.Mutex
	asked []question
}

type choice struct {
	name  string
	value uint8
}

// A question is a dial or a request that could meet a fault.
type question struct {
	at   time.Duration
	name string
	of   int // choices that it had, without the first, which is no fault
}

func (s *sequence) choose(at time.Duration, name string, of int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, question{at, name, of})
	for _, c := range s.choices {
		if c.name == name {
			return int(c.value)
		}
	}
	return 0
}

func (s *sequence) fault(at time.Duration, a attemptName) fault {
	if !strings.HasPrefix(a.request, s.only) {
		return fault{}
	}
	return s.faults[s.choose(at, a.String(), len(s.faults))]
}

// dialFault decides a dial for an attempt, or one ahead of all, which has no name.
func (s *sequence) dialFault(at time.Duration, a attemptName, dial int) dialFault {
	if a.request != "" && !strings.HasPrefix(a.request, s.only) {
		return dialFault{}
	}
	return s.dials[s.choose(at, fmt.Sprintf("%v, dial %d", a, dial), len(s.dials))]
}

// longer returns every sequence with one fault more, which comes after those of s.
func (s *sequence) longer() (all [][]choice) {
	slices.SortFunc(s.asked, func(a, b question) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.name, b.name)) })
	from := 0
	if n := len(s.choices); n > 0 {
		from = 1 + slices.IndexFunc(s.asked, func(q question) bool { return q.name == s.choices[n-1].name })
	}
	for _, q := range s.asked[from:] {
		for value := 1; value < q.of; value++ {
			all = append(all, append(slices.Clip(s.choices), choice{q.name, uint8(value)}))
		}
	}
	return all
}

// everySequence plays make's schedule with every sequence of faults, those with few
// faults first, until none can have more or until there are as many as most or -every
// allow; 0 is any number. Faults befall the call only, or every call if that is "".
func everySequence(t *testing.T, most int, only string, dials []dialFault, faults []fault, make func() *schedule) {
	log.SetOutput(io.Discard) // where net/http complains of what the service does
	began, sum, total := time.Now(), tally{}, 0
	level := [][]choice{nil}
	for n := 0; len(level) > 0 && (*every == 0 || n <= *every) && (most == 0 || n <= most) && !t.Failed(); n++ {
		var mu sync.Mutex
		var next [][]choice
		spread(t, fmt.Sprintf("%d faults", n), len(level), func(t *testing.T, i int) {
			s := make()
			s.every = &sequence{dials: dials, faults: faults, only: only, choices: level[i]}
			w := run(t, s)
			for _, v := range w.violations {
				t.Errorf("%v", v)
			}
			if len(w.violations) > 0 {
				t.Logf("%s\n%v", s.every, w)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			next = append(next, s.every.longer()...)
			sum.add(w.tally)
		})
		total += len(level)
		t.Logf("%9d sequences of %d faults, %v", len(level), n, time.Since(began).Round(time.Second))
		level = next
	}
	t.Logf("%9d sequences; more faults are possible: %t", total, len(level) > 0)
	for _, name := range []string{
		"refund accepted", "refund rejected", "refund not sent", "refund unknown, recorded", "refund unknown, not recorded",
		"download complete", "download failed", "file complete", "file failed", "connection ended that carried no request",
	} {
		if sum[name] > 0 {
			t.Logf("%9d %s", sum[name], name)
		}
	}
}

// String names the faults in the order in which they were met.
func (s *sequence) String() string {
	var b strings.Builder
	for _, c := range s.choices {
		if strings.Contains(c.name, ", dial ") {
			fmt.Fprintf(&b, "\n  %s: %v", c.name, s.dials[c.value])
		} else {
			fmt.Fprintf(&b, "\n  %s: %v", c.name, s.faults[c.value])
		}
	}
	return b.String()
}

// everyDial is what can befall a dial, once each.
var everyDial = []dialFault{
	{}, {refused: true}, {noHost: true}, {noLookup: true}, {hangs: true}, {delay: 4 * time.Second},
	{breaks: true}, {breaks: true, writes: 1, how: reset}, {breaks: true, writes: 1, how: closed}, {breaks: true, writes: 300, how: closed},
}

// everyFault is what can befall a request, once each.
var everyFault = func() (all []fault) {
	all = append(all, fault{}, fault{unread: true}, fault{twice: true}, fault{delay: 5 * time.Second}, fault{delay: 36 * time.Second},
		fault{early: 100}, fault{early: 103}, fault{encoded: true}, fault{page: huge}, fault{closes: 1, how: reset})
	for _, how := range []ending{reset, closed, stalled} {
		for _, cut := range []int{0, 9, 60, 200} {
			all = append(all, fault{ends: true, how: how, cut: cut}, fault{ends: true, how: how, cut: cut, chunked: true})
		}
	}
	for _, recorded := range []bool{false, true} {
		all = append(all, fault{garbage: true, recorded: recorded}, fault{status: 503, recorded: recorded, retryAfter: "1"})
		for _, p := range []page{errorObject, html} {
			all = append(all, fault{page: p, recorded: recorded}, fault{page: p, recorded: recorded, status: 202})
		}
		for _, status := range undecided {
			for _, p := range []page{ordinary, errorObject, empty, html} {
				all = append(all, fault{status: status, recorded: recorded, page: p})
			}
		}
	}
	for _, status := range []int{201, 202, 204} {
		all = append(all, fault{status: status}, fault{status: status, page: empty}, fault{status: status, page: notJSON})
	}
	for _, status := range refusals {
		all = append(all, fault{status: status}, fault{status: status, page: errorObject})
	}
	for _, after := range []string{"", "1", "61", "-1"} {
		all = append(all, fault{status: 429, retryAfter: after}, fault{status: 429, retryAfter: after, recorded: true})
		all = append(all, fault{status: 421, retryAfter: after, recorded: true}, fault{status: 425, retryAfter: after, recorded: true})
	}
	return append(all, fault{status: 429, remaining: "0"}, fault{status: 429, remaining: "7", recorded: true})
}()

// fewFaults has one of each kind that a write is repeated after, or not.
var fewFaults = []fault{
	{}, {unread: true}, {delay: 36 * time.Second}, {ends: true, how: closed, cut: 9}, {ends: true, how: stalled, cut: 60},
	{garbage: true, recorded: true}, {page: errorObject}, {page: html, recorded: true}, {status: 303, recorded: true},
	{status: 408, recorded: true}, {status: 500}, {status: 500, recorded: true}, {status: 503}, {status: 504, recorded: true},
	{status: 503, recorded: true, retryAfter: "1"}, {status: 307}, {status: 400}, {status: 404}, {status: 409}, {status: 501},
	{status: 406, recorded: true}, {status: 421, recorded: true}, {status: 429, recorded: true}, {status: 429, remaining: "0"},
	{status: 429, retryAfter: "1"}, {status: 429, retryAfter: "61"},
}

// steady is a schedule without chance.
func steady(w workload, retries int) *schedule {
	return &schedule{seed: 1, workload: w, settings: settings{
		retries: retries, attemptTimeout: 35 * time.Second, waitBase: 200 * time.Millisecond, waitMax: 5 * time.Second,
	}}
}

// TestEverySubmit tries every sequence of dials and faults that one Submit can meet, to
// its last attempt. Where WithResubmit allows a retry after nearly everything, it tries
// one retry with every fault, and two with one fault of each kind.
func TestEverySubmit(t *testing.T) {
	for _, test := range []struct {
		name     string
		faults   []fault
		retries  int
		resubmit bool
	}{
		{"two retries", everyFault, 2, false},
		{"resubmit, one retry", everyFault, 1, true},
		{"resubmit, two retries", fewFaults, 2, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			everySequence(t, 0, "", everyDial, test.faults, func() *schedule {
				s := steady(callers{"submits", []patience{{}}}, test.retries)
				s.settings.resubmit = test.resubmit
				return s
			})
		})
	}
}

// TestEverySubmitAhead does the same for the third refund in a row, which finds a
// connection that was dialled ahead of it.
func TestEverySubmitAhead(t *testing.T) {
	workload := callers{"submits", []patience{{}, {start: 100 * time.Millisecond}, {start: 300 * time.Millisecond}}}
	dials := append(slices.Clip(everyDial), dialFault{limit: 50 * time.Millisecond, how: reset}, dialFault{limit: 50 * time.Millisecond, how: closed},
		dialFault{limit: 50 * time.Millisecond, says408: true}, dialFault{limit: 200 * time.Millisecond, how: closed}, dialFault{limit: 200 * time.Millisecond, says408: true})
	everySequence(t, 3, name("submits", 2), dials, everyFault, func() *schedule { return steady(workload, 2) })
}

// TestEverySubmission tries every sequence that two records of SubmitAll can meet: a
// failure, and what becomes of the probe after it. With a bound by -every, it takes one
// fault of each kind.
func TestEverySubmission(t *testing.T) {
	faults := everyFault
	if *every > 0 {
		faults = fewFaults
	}
	workload := submitAll{concurrency: 1, grace: time.Second, giveUpAfter: 30 * time.Minute,
		items: []submitItem{{account: accountID, id: "rf_0"}, {account: accountID, id: "rf_1", n: 1}}}
	everySequence(t, 3, "", fewDials, faults, func() *schedule { return steady(workload, 2) })
}

// everyBreak is what can befall a request for content of thousands of bytes, or for the rest of
// it, once each.
var everyBreak = func() (all []fault) {
	all = append(all, fault{}, fault{unread: true}, fault{twice: true}, fault{garbage: true}, fault{encoded: true}, fault{delay: 36 * time.Second}, fault{expire: true},
		fault{page: html}, fault{page: errorObject}, fault{page: empty}, fault{changes: true})
	for _, how := range []ending{reset, closed, stalled} {
		for _, cut := range []int{0, 9, 400, 1500, 2900} {
			all = append(all, fault{ends: true, how: how, cut: cut})
		}
		all = append(all, fault{ends: true, how: how, cut: 1500, chunked: true})
	}
	for _, tag := range []tag{weak, none, dated} {
		all = append(all, fault{tag: tag}, fault{tag: tag, ends: true, how: closed, cut: 1500}, fault{tag: tag, changes: true, ends: true, how: closed, cut: 1500})
	}
	for _, span := range []span{whole, shifted, shortened, unnamed, notThere} {
		all = append(all, fault{span: span}, fault{span: span, ends: true, how: closed, cut: 1500}, fault{span: span, changes: true})
	}
	for _, status := range []int{202, 204, 301, 304, 400, 404, 409, 410, 416, 421, 425, 429, 500, 501, 503} {
		all = append(all, fault{status: status})
	}
	return append(all, fault{status: 429, retryAfter: "1"}, fault{status: 503, retryAfter: "61"})
}()

// fewDials are enough where a connection may be kept and a download goes on over another.
var fewDials = []dialFault{{}, {refused: true}, {breaks: true}, {breaks: true, writes: 100, how: closed}}

// TestEveryDownload tries every sequence of dials and faults that a download can meet
// until two have broken it, or three.
func TestEveryDownload(t *testing.T) {
	for name, workload := range map[string]workload{
		"stream": callers{"downloads", []patience{{}}},
		"file":   files{{}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			everySequence(t, 3, "", fewDials, everyBreak, func() *schedule { return steady(workload, 1) })
		})
	}
}
