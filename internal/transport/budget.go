package transport

import "sync"

// A budget keeps the retries of a client a fraction of its traffic, so that an
// outage is not met with a multiple of the load: every retry costs, every
// success at the first attempt earns.
type budget struct {
	mu     sync.Mutex
	tokens int
}

const (
	budgetFull   = 500
	costRetry    = 5
	costTimeout  = 10
	earnedByCall = 1
)

func newBudget() *budget { return &budget{tokens: budgetFull} }

func (b *budget) take(cost int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < cost {
		return false
	}
	b.tokens -= cost
	return true
}

func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(budgetFull, b.tokens+n)
}
