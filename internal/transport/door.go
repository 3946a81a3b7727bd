package transport

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/flow"
)

// A Door lets the attempts of a call to the service: a *flow.Window.
type Door interface {
	// Down fails if the service is down, and no probe is due.
	Down() error
	// Acquire waits for a place in flight, which release gives back.
	Acquire(context.Context, flow.Request) (release func(flow.Result), err error)
}

// mostIdle is how long an attempt that is not sent yet may keep its place in flight, at first. Others need it, above
// all that of a probe. Each time it has lost its place, it may keep the next one for moreIdle times as long: where
// the queue of the limiter is longer than that, those who keep places for nothing would otherwise let no one go.
const (
	mostIdle = time.Second
	moreIdle = 4
)

// atOnce is a wait that is none.
const atOnce = time.Millisecond

// errTooLate is the error of a call that had no place until no time was left for a response.
var errTooLate = fault.NewError("no time is left for a response before the deadline", context.DeadlineExceeded)

// down reports whether the service is down. An attempt looks before it waits for anything.
func (inv *invocation) down() (stopped *fault.Verdict, err error) {
	if inv.call.Door == nil {
		return nil, nil
	}
	return inv.heldBack(inv.call.Door.Down())
}

// enter takes a place in flight for the attempt, and runs the caller's BeforeSend last.
func (inv *invocation) enter(a *attempt, retry bool) (stopped *fault.Verdict, err error) {
	mayIdle := mostIdle
	for kept := false; !kept; retry, mayIdle = true, mayIdle*moreIdle {
		began := time.Now()
		if stopped, err := inv.acquire(a, retry); err != nil {
			return stopped, err
		}
		// A pause may have begun meanwhile.
		if time.Since(began) <= atOnce && inv.client.throttle.Remaining(inv.call.Account) == 0 {
			break
		}
		// Those that waited for places after the limiter's leave would leave together, above the rate.
		idle := a.lendsAfter(mayIdle)
		stopped, err := inv.client.throttle.Wait(inv.ctx, inv.call.Account, inv.settings.Limiter, inv.settings.random, inv.patience())
		if kept = idle.Stop(); err != nil {
			return stopped, err
		}
	}
	before := inv.settings.BeforeSend
	if before == nil {
		return nil, nil
	}
	idle := a.lendsAfter(mostIdle)
	err = before(inv.ctx)
	kept := idle.Stop()
	if err != nil {
		return fault.NotBegun, fault.NewError(fault.NotBegun.Text, fault.ErrNotBegun, err)
	}
	if err := inv.ctx.Err(); err != nil {
		return nil, err
	}
	if !kept {
		return inv.acquire(a, true)
	}
	return nil, nil
}

// lendsAfter gives the place of an attempt to others if it is not sent within d.
func (a *attempt) lendsAfter(d time.Duration) *time.Timer {
	release := a.release
	return time.AfterFunc(d, func() { release(flow.Result{}) })
}

func (inv *invocation) acquire(a *attempt, retry bool) (stopped *fault.Verdict, err error) {
	door := inv.call.Door
	if door == nil {
		return nil, nil
	}
	release, err := door.Acquire(inv.ctx, flow.Request{Of: inv.call.Of, Retry: retry || inv.call.Again, Bulk: inv.call.Bulk, Since: a.arrived})
	if err != nil {
		return inv.heldBack(err)
	}
	a.release = release
	return nil, nil
}

// heldBack says that the door has held an attempt back.
func (inv *invocation) heldBack(err error) (stopped *fault.Verdict, _ error) {
	pause, isPause := errors.AsType[*flow.Pause](err)
	switch {
	case err == nil:
		return nil, nil
	case isPause:
		inv.resumes = inv.client.Probes(inv.call.Account, pause.Until)
		return fault.HeldBack, fault.NewError(pause.Error(), fault.ErrSuspended, pause)
	case errors.Is(err, flow.ErrTooLate):
		return fault.HeldBack, errTooLate
	}
	return nil, err
}

// leaves gives the place of an attempt back, and says what its end says of the service.
func (inv *invocation) leaves(a *attempt) {
	says := inv.says(a)
	if says.Says == flow.Success {
		inv.client.throttle.Works(inv.call.Account)
	}
	a.release(says)
}

// says is what the end of an attempt says of the service. A failure says something of its request, and only a
// 429, a 503 and time speak of the load. A bulk call makes its own load, so any other 5xx may do so, too.
func (inv *invocation) says(a *attempt) flow.Result {
	r := flow.Result{Says: flow.Failure}
	if a.verdict != fault.Success {
		r.Why = fault.ConditionOf(a.reason())
	}
	waited := a.ended.Sub(a.connected())
	limited := a.StatusCode == http.StatusTooManyRequests || a.StatusCode == http.StatusServiceUnavailable
	switch status := a.StatusCode; {
	case a.verdict == fault.Success, status != 0 && inv.call.Write && a.outcome() == fault.OutcomeAccepted:
		r.Says, r.Took = flow.Success, waited
	case a.verdict == fault.CallerEnded && (errors.Is(a.err, fault.ErrPassed) || !inv.missed(a)):
		r.Says = flow.Nothing
	case a.verdict == fault.CallerEnded, a.verdict == fault.AttemptTimedOut:
		if a.Evidence.Connected || !a.Evidence.Traced { // or the connection took too long, which is no queue
			r.Says, r.Took = flow.Late, waited
		}
	case a.asksToWait() && inv.isForIt(): // it waits, and nobody else
	case inv.call.FailedAlone && !limited:
		r.Says = flow.Nothing
	case limited, inv.call.Bulk && !inv.call.Part && status >= 500:
		r.Says = flow.Overload
	case status == http.StatusGatewayTimeout:
		r.Took = waited
	case status == http.StatusUnauthorized && a.token != "" && !inv.settings.OwnCredential, status == http.StatusProxyAuthRequired:
	case status/100 == 4:
		r.Says = flow.Answer
	}
	return r
}

// isForIt reports whether a response that asked to wait spoke to the account or the call, and not of the load.
func (inv *invocation) isForIt() bool {
	throttle := &inv.client.throttle
	return throttle.IsOwn(inv.call.Account) || !inv.call.Bulk && throttle.IsRare()
}

// missed reports whether an attempt ended because its response had not come by the deadline.
func (inv *invocation) missed(a *attempt) bool {
	wire := inv.call.RequestContext
	return errors.Is(a.err, context.DeadlineExceeded) || wire != nil && context.Cause(wire) == context.DeadlineExceeded
}

// connected is when the attempt had a connection, as far as that is known.
func (a *attempt) connected() time.Time {
	if at := a.exchange.Connected(); !at.IsZero() {
		return at
	}
	return a.Evidence.Began
}
