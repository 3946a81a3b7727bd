package transport

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"syscall"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// A run is the state of one call across its attempts.
type run struct {
	client   *Client
	call     *Call
	settings *Settings
	log      callLog
	http     http.Client
	loop     retryablehttp.Client
	began    time.Time

	attempts int // handed to the network
	retries  int
	repeats  [points]uint8
	cost     int           // of the last retry
	wait     time.Duration // before the next attempt
	waiting  bool          // there was to be a next attempt
	renewed  string        // the token that replaces a refused one
	first    attempt
	last     *attempt
	stopped  *attempt // the one after last, if it ended before it was sent
	doubt    *attempt // a write that may have been processed before it was repeated
}

const maxRedirects = 5

// redirect follows nothing but a GET within its origin. Each hop is an attempt
// of its own, with headers of its own.
func redirect(next *http.Request, via []*http.Request) error {
	from := via[0].URL
	if via[0].Method != http.MethodGet || next.URL.Scheme != from.Scheme || next.URL.Host != from.Host ||
		next.URL.User != nil || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// next is called after each attempt and decides whether there is another.
func (r *run) next(ctx context.Context, _ *http.Response, _ error) (bool, error) {
	a := r.last
	if a == nil || r.stopped != nil {
		return false, nil
	}
	retryAfter := a.retryAfter()
	if retryAfter > 0 && (a.point == rateLimited || a.point == serverUnavailable) {
		r.client.gate.pause(min(retryAfter, maxRetryAfter))
	}
	if a.point == success {
		r.earn()
		return false, nil
	}
	if !r.mayRepeat(a) || retryAfter > maxRetryAfter {
		return false, nil
	}
	if ctx.Err() != nil {
		r.waiting = true
		return false, nil
	}
	r.wait = obey(r.settings.backoff(r.retries, a.point == rateLimited), retryAfter)
	if a.point == unauthorized {
		if !r.renewToken(ctx, a) {
			return false, nil
		}
		r.wait = 0
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= r.wait {
		return false, nil
	}
	r.cost = costRetry
	switch a.point {
	case attemptTimedOut:
		r.cost = costTimeout
	case unauthorized:
		r.cost = 0 // another token is no more load, and an old one would fail every call
	}
	if !r.client.budget.take(r.cost) {
		r.log.budgetSpent()
		return false, nil
	}
	if r.call.Write && a.outcome() == OutcomeUnknown {
		r.doubt = a
	}
	r.repeats[a.point]++
	r.retries++
	r.waiting = true
	r.log.retry(r.attempts, a, r.wait)
	return true, nil
}

func (r *run) mayRepeat(a *attempt) bool {
	row := matrix[a.point]
	allowed := row.reads
	if r.call.Write && !(r.settings.RepeatUnknown && a.outcome() == OutcomeUnknown) {
		allowed = row.writes
		if a.outcome() == OutcomeUnknown {
			allowed = 0
		}
	}
	return r.retries < r.settings.MaxRetries && r.repeats[a.point] < allowed
}

// renewToken asks for another token. There is no point in sending the one that
// was just refused.
func (r *run) renewToken(ctx context.Context, a *attempt) bool {
	source := r.settings.Token
	if _, static := source.(staticToken); static || source == nil {
		return false
	}
	token, err := r.client.renew(ctx, source, a.token)
	if err != nil {
		a.err = err
		return false
	}
	r.renewed = token
	return token != a.token
}

func (r *run) earn() {
	if r.retries == 0 {
		r.client.budget.give(earnedByCall)
	} else {
		r.client.budget.give(r.cost)
	}
}

func (a *attempt) retryAfter() time.Duration {
	if a.evidence.StatusCode < 300 {
		return 0
	}
	return parseRetryAfter(a.header)
}

// result reads the run once its loop has ended.
func (r *run) result(ctx context.Context) Result {
	a := r.last
	if a == nil {
		return refused(r.call, Invalid("the request cannot be sent"))
	}
	res := Result{
		Outcome:    a.outcome(),
		Evidence:   a.evidence,
		StatusCode: a.evidence.StatusCode,
		Header:     a.header,
		RequestID:  a.id,
		Attempts:   r.attempts,
		Body:       a.body,
		Stream:     a.stream,
		Length:     a.length,
		Framed:     a.framed,
		Repeats:    r.settings.MaxRetries > 0,
	}
	if r.doubt != nil && (res.Outcome == OutcomeNotSent || res.Outcome == OutcomeRejected) {
		res.Outcome, res.Evidence = OutcomeUnknown, r.doubt.evidence
	}
	switch {
	case a.point == success:
	case r.call.Write && res.Outcome == OutcomeAccepted:
		res.BodyErr = a.reason()
	default:
		res.Failure = r.failure(ctx, a)
	}
	r.log.done(&res, a, r.log.since(r.began))
	return res
}

func (r *run) failure(ctx context.Context, a *attempt) *Failure {
	f := &Failure{
		Operation:  r.call.Operation,
		StatusCode: a.evidence.StatusCode,
		RequestID:  a.id,
		RetryAfter: a.retryAfter(),
		Attempts:   r.attempts,
		Body:       a.body,
		Err:        a.reason(),
	}
	if len(f.Body) > maxErrorBody {
		// The error may live long; it must not keep a whole answer alive.
		f.Body = bytes.Clone(f.Body[:maxErrorBody])
	}
	if a.point == limiterRefused {
		f.RetryAfter = r.client.gate.remaining()
	}
	if f.StatusCode >= 300 {
		decodeErrorBody(f)
		f.Code = r.conceal(a, f.Code)
	}
	if r.stopped != nil && !r.waiting {
		f.Err = because(r.stopped.reason().Error(), r.stopped.reason(), f.Err)
	}
	if ended := ctx.Err(); ended != nil && (r.waiting || a.point == callerEnded) {
		f.Err = endedBy(ctx, ended, f.Err)
	}
	if r.doubt != nil && a.outcome() != OutcomeUnknown {
		var known *reason
		errors.As(f.Err, &known)
		f.Err = because(known.words+", after an earlier attempt that may have been processed", f.Err)
	}
	return f
}

// reason is why the attempt failed, in safe words and with the errors behind
// them.
func (a *attempt) reason() error {
	row := matrix[a.point]
	words, is := row.words, []error{}
	var own *reason
	if errors.As(a.err, &own) {
		words = own.words
	} else if errno, ok := errors.AsType[syscall.Errno](a.err); ok {
		words += ": " + errno.Error()
	}
	if a.evidence.StatusCode >= 300 && row.kind != ErrBadResponse {
		if kind := statusKind(a.evidence.StatusCode); kind != nil {
			is = append(is, kind)
		}
	} else if row.kind != nil {
		is = append(is, row.kind)
	}
	// A transport that knows nothing of causes reports the end of an attempt as a
	// cancellation, which would be taken for the caller's.
	if a.err != nil && a.point != attemptTimedOut {
		is = append(is, a.err)
	}
	return because(words, is...)
}

// Ended is the error of a call whose context ended while it waited for something
// other than an attempt.
func Ended(ctx context.Context) error { return endedBy(ctx, ctx.Err(), nil) }

// endedBy says that the caller's context ended the call, and keeps what the
// last attempt had come to.
func endedBy(ctx context.Context, ended, last error) error {
	words := "the deadline passed"
	if errors.Is(ended, context.Canceled) {
		words = "canceled by the caller"
	}
	is := []error{ended}
	if cause := context.Cause(ctx); cause != nil && cause != ended {
		is = append(is, cause)
	}
	if last != nil {
		is = append(is, last)
	}
	return because(words, is...)
}
