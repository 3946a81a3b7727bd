package refunds

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/bulk"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
	"github.com/carddata/carddata-go/internal/transport"
)

// A health derives the state of the service from the results of all calls of a client, and
// controls the window.
//
// A refusal is the account's problem while another account works. If none works, it is the
// service's: for example, a firewall may block this address. Without any other failure, it is
// the setup's.
type health struct {
	window *flow.Window
	pauses transport.PauseLog

	mu      sync.Mutex
	hopeful bool            // a request succeeded, or failed in a way that may pass
	working map[string]bool // some of the accounts that were accepted
	turned  int             // refusals of these since a record succeeded
	refused map[string]bool // accounts refused since a record succeeded
	outage  bool            // a failure since then was not about an account

	preparing time.Duration // by BeforeSend, on average
}

const (
	maxWorking = 16
	// After so many in a row, not these refunds are refused, but their accounts, which have worked.
	mostRefusals = 8
	// After maxRefused refused accounts without a success, none works.
	maxRefused = 32
)

func newHealth(core *transport.Client) *health {
	jitter := func(below time.Duration) time.Duration { return core.Jitter(context.Background(), below) }
	call := transport.Call{Operation: operation, Method: http.MethodPost, Route: route}
	return &health{
		window: flow.New(false, jitter), pauses: transport.PauseLog{Client: core, Call: call},
		working: map[string]bool{}, refused: map[string]bool{},
	}
}

// meaningOf returns the meaning of a record's error. The settings say what is its account's own.
func meaningOf(err error, settings *transport.Settings) bulk.Meaning {
	if err == nil {
		return bulk.Success
	}
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		return bulk.Nothing
	}
	switch scope := failed.failure().Scope(); {
	case settings.OwnCredential && errors.Is(err, ErrUnauthorized):
		return bulk.Account
	case settings.OwnCredential && errors.Is(err, ErrCredential), settings.OwnLimiter && errors.Is(err, ErrLocalLimit):
		return bulk.Nothing // the item's own code ended it before it was sent
	case scope == fault.OfAccount:
		return bulk.Account
	case scope == fault.OfOutage, scope == fault.OfSetup, failed.Outcome == OutcomeUnknown && failed.StatusCode != 0:
		return bulk.Outage
	case failed.Outcome == OutcomeRejected:
		return bulk.Success
	case failed.Outcome == OutcomeUnknown && errors.Is(err, context.DeadlineExceeded):
		return bulk.Deadline
	}
	return bulk.Nothing
}

// settle reports a request and its time on the wire to the window.
func (h *health) settle(request int, account string, m bulk.Meaning, took time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hopeful = h.hopeful || m != bulk.Nothing && !isOfSetup(err)
	failed, _ := errors.AsType[*Error](err)
	ofAccounts := !h.outage && len(h.refused) > 0
	switch m {
	case bulk.Success:
		clear(h.refused)
		h.outage = false
		h.turned = 0
		if len(h.working) < maxWorking {
			h.working[account] = true
		}
	case bulk.Account:
		if h.working[account] {
			h.turned++
		}
		if h.turned >= mostRefusals {
			delete(h.working, account)
		}
		if len(h.refused) < maxRefused {
			h.refused[account] = true
		}
		if len(h.working) == 0 || len(h.refused) >= maxRefused { // none works
			bulk.Settle(h.window, request, bulk.Outage, took, failed.failure())
			return
		}
	}
	h.outage = bulk.Settle(h.window, request, m, took, failed.failure()) || h.outage
	if m == bulk.Success && ofAccounts { // a success from before the pause ends it, too
		h.window.Resume()
	}
}

// prepares notes how long a call's BeforeSend took.
func (h *health) prepares(took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.preparing += (took - h.preparing) / 8
}

// preparation is how long BeforeSend takes on average.
func (h *health) preparation() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.preparing
}

// log calls the caller's logger, which may panic: a result must be safe by then.
func (h *health) log() {
	state := h.window.State()
	h.pauses.Log(state.Paused, state.Next, state.Why)
}

// isOfSetup reports whether somebody has to correct something first.
func isOfSetup(err error) bool {
	failed, ok := errors.AsType[*Error](err)
	return ok && (failed.failure().Scope() == fault.OfSetup || failed.failure().Scope() == fault.OfAccount)
}

// isHopeful reports whether waiting may help. It does not if the setup has been refused from
// the start.
func (h *health) isHopeful() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hopeful
}

// seeks reports whether only a few accounts are refused, so that another account may work.
func (h *health) seeks() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return 0 < len(h.refused) && len(h.refused) < maxRefused
}

// meet gets the account of the next record, and reports whether it may work although others are
// refused. It ends a pause that is for these alone.
func (h *health) meet(account string) bool {
	if !h.window.State().Paused || !h.seeks() {
		return false
	}
	h.endPause(account)
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.refused[account]
}

// endPause ends a pause that is for other accounts than this one alone, and reports whether it did.
func (h *health) endPause(account string) bool {
	h.mu.Lock()
	others := 0 < len(h.refused) && len(h.refused) < maxRefused && !h.refused[account] && !h.outage
	h.mu.Unlock()
	if !others || !h.window.State().Paused {
		return false
	}
	h.window.Resume()
	return true
}

// A place tracks one request through the window.
type place struct {
	health   *health
	waits    time.Time // since when it waits
	deadline time.Time // of its response; zero: none
	clock    transport.Clock
	pause    *flow.Pause
	onLeave  func() // called once, when it waits for nothing more

	mu      sync.Mutex
	request int         // 0: it has no place
	idle    *time.Timer // until the place may be given to others; nil: the request leaves
}

// mostIdle is how long a call may keep the place of a probe before its request leaves. Others need
// it if the call's own limiter, token source or BeforeSend hangs.
const mostIdle = time.Second

// enter waits for a place, unless the refund has one from its last attempt.
func (p *place) enter(ctx context.Context) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.request == 0:
		if p.request, err = p.health.window.Wait(ctx, p.health.preparation()); err != nil {
			return p.suspended(err)
		}
	case !p.clock.Left().IsZero(): // a retry is no probe
		return p.suspended(p.health.window.Recheck(0))
	}
	p.idle = time.AfterFunc(mostIdle, p.yield)
	return nil
}

func (p *place) yield() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.idle == nil:
	case p.health.window.Yield(p.request):
		p.request = 0
	default:
		p.idle.Reset(mostIdle)
	}
}

// keep keeps the place, if it still has one, and returns its request.
func (p *place) keep() (request int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle != nil {
		p.idle.Stop()
		p.idle = nil
	}
	return p.request
}

// leave checks the window again, because the attempt may have waited for a limiter.
func (p *place) leave() (err error) {
	if told := p.onLeave; told != nil {
		p.onLeave = nil
		told()
	}
	request := p.keep()
	p.health.prepares(p.clock.Preparing())
	switch {
	case request == 0: // it has yielded its own
		p.request, err = p.health.window.Return()
	case !p.clock.Left().IsZero(): // a retry is no probe
		err = p.health.window.Recheck(0)
	default:
		err = p.health.window.Recheck(request)
	}
	if err != nil {
		return p.suspended(err)
	}
	if !p.deadline.IsZero() && p.health.window.TooLate(p.deadline, time.Since(p.waits)) {
		return p.suspended(flow.ErrTooLate)
	}
	return nil
}

func (p *place) suspended(err error) error {
	if errors.Is(err, flow.ErrTooLate) {
		return transport.TooLate(nil)
	}
	if pause, ok := errors.AsType[*flow.Pause](err); ok {
		p.pause = pause
		return fault.NewError("requests keep failing, submission pauses", ErrSuspended)
	}
	return err
}
