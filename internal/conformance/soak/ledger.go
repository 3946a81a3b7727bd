package main

import (
	"fmt"
	"sync"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// A ledger is what the callers of one round were told.
type ledger struct {
	mu       sync.Mutex
	outcomes map[string]refunds.Outcome
	wrongs   []string
}

func newLedger() *ledger { return &ledger{outcomes: map[string]refunds.Outcome{}} }

func (l *ledger) wrong(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrongs = append(l.wrongs, fmt.Sprintf(format, args...))
}

func (l *ledger) settle(id string, outcome refunds.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[id] = outcome
}

// compare returns what was wrong, the refunds being compared with those that
// the service recorded.
func (l *ledger) compare(recorded []sandbox.Refund) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	times := map[string]int{}
	for _, r := range recorded {
		times[r.RefundID]++
		if _, told := l.outcomes[r.RefundID]; !told {
			l.wrongs = append(l.wrongs, "a refund was recorded of which nobody was told")
		}
	}
	for id, outcome := range l.outcomes {
		n := times[id]
		switch {
		case n > 1:
			l.wrongs = append(l.wrongs, fmt.Sprintf("a refund was recorded %d times", n))
		case n == 0 && outcome == refunds.OutcomeAccepted, n == 1 && outcome != refunds.OutcomeAccepted && outcome != refunds.OutcomeUnknown:
			l.wrongs = append(l.wrongs, fmt.Sprintf("a refund was reported %v and recorded %d times", outcome, n))
		}
	}
	return l.wrongs
}
