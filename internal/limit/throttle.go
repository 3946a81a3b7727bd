package limit

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
	"golang.org/x/time/rate"
)

// The packages that take a Limiter declare it with the same method.
type Limiter interface {
	Wait(ctx context.Context) error
}

// A Throttle holds back attempts for as long as the service asks, with Retry-After on a 429 or 503.
//
// One such response speaks of its own call, whose next attempt waits that long anyway. After three of
// an account without a success between them, all calls of that account wait. Nobody knows whether
// the response speaks of other accounts, too: they find that out themselves. The account is what the service
// may limit: that of a refund, the merchant of a download, and "" where there is none.
type Throttle struct {
	mu       sync.Mutex
	accounts map[key]*pause // those with a pause, or with a response that asked for one
	row      int            // responses that asked to wait, of all accounts, without a success between them
	asked    float64        // the share of responses that asked to wait, among those and successes
}

// A key stands for an account, because fmt would print the account itself.
type key uint64

var seed = maphash.MakeSeed()

func keyOf(account string) key { return key(maphash.String(seed, account)) }

// A pause is what the service has asked for.
type pause struct {
	row   int // responses without a success between them
	until time.Time
	quiet bool // it has been logged, and nothing was sent since it began
}

const (
	rowOfPause = 3
	mostPauses = 1000  // that are kept although they have ended
	lately     = 100   // responses
	few        = 0.055 // of them: fewer than six
)

// Asks notes that a response to an attempt of an account asks to wait for d. It reports whether a pause
// has begun, or has become much longer, so that it is to be logged.
func (t *Throttle) Asks(of string, d time.Duration) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, account := time.Now(), keyOf(of)
	own := t.accounts[account]
	if own == nil {
		if len(t.accounts) >= mostPauses {
			maps.DeleteFunc(t.accounts, func(_ key, p *pause) bool { return p.until.Before(now) })
		}
		if own = new(pause); t.accounts == nil {
			t.accounts = map[key]*pause{}
		}
		t.accounts[account] = own
	}
	own.row, t.row = own.row+1, t.row+1
	t.asked += (1 - t.asked) / lately
	return own.row >= rowOfPause && own.extend(now.Add(d))
}

// extend extends a pause, and never shortens it. Attempts that are refused together extend it only
// slightly, and are logged once.
func (p *pause) extend(until time.Time) (news bool) {
	if until.After(p.until) {
		news = !p.quiet || until.Sub(p.until) >= time.Second
		p.until, p.quiet = until, true
	}
	return news
}

// IsOwn reports whether an account is refused alone: others were accepted since it was first asked to wait, and it was
// not.
func (t *Throttle) IsOwn(account string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.accounts[keyOf(account)]
	return own != nil && own.row > t.row
}

// IsRare reports whether fewer than six of the last hundred responses asked to wait.
func (t *Throttle) IsRare() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked < few
}

// Works notes a success of an account.
func (t *Throttle) Works(account string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.row = 0
	t.asked -= t.asked / lately
	if own := t.accounts[keyOf(account)]; own != nil {
		if own.row = 0; time.Until(own.until) <= 0 && !own.quiet {
			delete(t.accounts, keyOf(account))
		}
	}
}

// Resumes notes that an attempt of an account is sent. It reports the end of a pause once.
func (t *Throttle) Resumes(account string) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.accounts[keyOf(account)]
	if own == nil {
		return false
	}
	news, own.quiet = own.quiet, false
	return news
}

// End is the end of the pause of an account, or a time before now.
func (t *Throttle) End(account string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.accounts[keyOf(account)]; own != nil {
		return own.until
	}
	return time.Time{}
}

// Remaining is the time until the end of the pause of an account.
func (t *Throttle) Remaining(account string) time.Duration {
	return max(0, time.Until(t.End(account)))
}

// Wait returns when the pause of an account is over and the limiter lets the attempt go. If the deadline
// comes first, it fails at once, so that the caller can do something else and leaves its
// place in the queue free.
//
// patience bounds the wait for a limiter; 0: nothing does. It does not apply to a rate.Limiter, which
// would refuse a longer wait at once.
func (t *Throttle) Wait(ctx context.Context, account string, l Limiter, jitter await.Jitter, patience time.Duration) (stopped *fault.Verdict, err error) {
	for {
		if left := t.Remaining(account); left > 0 {
			if patience > 0 && t.IsOwn(account) {
				return fault.Paused, errPausedAlone
			}
			if patience > 0 {
				return fault.Paused, errPausedBulk
			}
			if err := waitPause(ctx, jitter, left); err != nil {
				return fault.Paused, err
			}
		}
		if l != nil {
			if stopped, err := waitLimiter(ctx, l, patience); err != nil {
				return stopped, err
			}
		}
		// A pause may have begun while this attempt queued for the limiter.
		if t.Remaining(account) == 0 {
			return nil, nil
		}
	}
}

func waitLimiter(ctx context.Context, l Limiter, patience time.Duration) (stopped *fault.Verdict, err error) {
	bounded := ctx
	if own, ok := l.(*rate.Limiter); ok {
		err = own.Wait(ctx)
	} else {
		if patience > 0 {
			var cancel context.CancelFunc
			bounded, cancel = context.WithTimeout(ctx, patience)
			defer cancel()
		}
		err = l.Wait(bounded)
	}
	switch {
	case err == nil:
		return nil, nil
	case bounded.Err() != nil && ctx.Err() == nil:
		return fault.LimiterRefused, fault.NewError("the limiter did not return in time", fault.ErrLocalLimit)
	}
	return limiterRefusal(ctx, l, err)
}

// errNoTurn marks a refusal that every further call would get, too.
var errNoTurn = errors.New("no further call can be sent")

var ErrPaused = fault.NewError(fault.Paused.Text+" beyond this call's deadline", fault.ErrPaused, errNoTurn, context.DeadlineExceeded)

func waitPause(ctx context.Context, jitter await.Jitter, left time.Duration) error {
	// Spread the calls that waited together over an eighth of the wait, or over the rest of
	// the time before the deadline.
	spread := left/8 + time.Millisecond
	if deadline, ok := ctx.Deadline(); ok {
		spare := time.Until(deadline) - left
		if spare <= 0 {
			return ErrPaused
		}
		spread = min(spread, spare/2+1)
	}
	if await.Sleep(ctx, left+jitter(ctx, spread), nil) != nil {
		return fault.ErrPaused // the context says what ended the wait
	}
	return nil
}

// limiterRefusal says that the refusal is local. x/time/rate refuses a wait beyond the
// deadline with an error that is not context.DeadlineExceeded, so add it. The errors of other
// limiters are unknown.
func limiterRefusal(ctx context.Context, l Limiter, err error) (stopped *fault.Verdict, _ error) {
	stopped = fault.LimiterRefused
	if ctxErr := ctx.Err(); ctxErr != nil {
		return stopped, ctxErr
	}
	causes := []error{fault.ErrLocalLimit, err}
	if r, ok := l.(*rate.Limiter); ok && r.Burst() == 0 {
		causes = []error{fault.ErrLocalLimit, errNoTurn, err} // it never lets a call through
	} else if ok {
		causes = []error{fault.ErrLocalLimit, errNoTurn, context.DeadlineExceeded, err}
		stopped = fault.TurnTooLate
	}
	return stopped, fault.NewError(stopped.Text, causes...)
}

// The errors of an attempt of a bulk call in a pause. It need not wait here.
var (
	errPausedBulk  = fault.NewError(fault.Paused.Text, fault.ErrPaused, errPaused)
	errPausedAlone = fault.NewError(fault.Paused.Text, fault.ErrPaused, errPaused, errAlone)

	errPaused = errors.New("paused")
	errAlone  = errors.New("others are accepted")
)

// IsPause reports whether the service has asked an attempt of a bulk call to wait.
func IsPause(err error) bool { return fault.IsDirect(err, errPaused) }

// IsPauseOfOne reports whether, besides, others were accepted since the service asked this account.
func IsPauseOfOne(err error) bool { return fault.IsDirect(err, errAlone) }

// NoTurn reports that a limit or a pause lets no further call through, at least before the
// deadline.
func NoTurn(err error) bool { return fault.IsDirect(err, errNoTurn) }
