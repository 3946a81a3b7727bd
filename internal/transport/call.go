package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/wire"
	"github.com/hashicorp/go-retryablehttp"
)

// A Call describes one operation of a service.
type Call struct {
	Operation string            // for errors and logs: "lookup"
	Method    string            //
	Route     string            // the path's template, for logs
	Path      string            // the escaped path, below the base address
	Headers   func(http.Header) // sets the call's own headers
	Body      []byte            // nil: none; never changed after the call began
	Write     bool              // the service must not process it twice
	Stream    bool              // return the body of a 200 unread
	Partial   bool              // the call asks for a range, so a 206 is its 200
	Resume    int               // how many resumes came before without progress, and this one; above 0, a backoff comes first

	// Conditional calls ask for changes. A 304 is a success without a body.
	Conditional bool

	// Door admits the attempts. Nil: nothing holds them back.
	Door Door
	// Account is what the service may limit: see limit.Throttle.
	Account string
	// Of is what would fail again if it is sent again: see flow.Request. Again: it was tried before this call.
	Of    uint64
	Again bool

	// Bulk marks one of many concurrent calls. It may queue for the limiter beyond the
	// CallTimeout. Without a deadline, the CallTimeout bounds its attempts instead. It leaves retries
	// to the loop that makes the calls, because the loop knows a better time. Only a refused token,
	// a 421 or 425 of a read, and a write under Resubmit are retried inside the call.
	Bulk bool
	// Part marks a part of a request that failed. If it fails too, the request may be at fault, so a 5xx says
	// nothing of the load, as with a single call.
	Part bool
	// FailedAlone marks a request that failed before although it cannot be made smaller. Unless a limit refuses
	// it, another failure says nothing of the service.
	FailedAlone bool
	// RequestContext ends the request on the wire. The call's own context then ends only
	// waits and further attempts, and must not outlive it. Nil: the call's context ends both.
	RequestContext context.Context

	// Identifiers are ids of the caller in Path and Body, such as card numbers. If the
	// service repeats one in a code or a request id, that code or id is not printed. Nil:
	// none.
	Identifiers func() []string

	// Decode reads the body of a success and must not keep any part of it. Its error makes
	// the response malformed.
	Decode func(body []byte) error
	// KeepBody gets the body of a success after Decode, and owns it until ReleaseBody. Nil:
	// the body is released at once.
	KeepBody func(*bytes.Buffer)
	// Observe runs on the call's goroutine: before each attempt is sent, with the number of
	// attempts so far, and after each failed attempt, with its failure. Nil: not called.
	Observe func(attempts int, failed *fault.Failure)
	// Enough reports after a failed attempt that no other may follow. Nil: the policy alone decides.
	Enough func(failed *fault.Failure) bool
}

// A Result describes a finished call. Failure is nil exactly when the call succeeded. A write
// succeeds by its status, even if the body of the response was lost.
type Result struct {
	Failure    *fault.Failure
	Outcome    fault.Outcome
	Evidence   wire.Evidence
	StatusCode int
	Header     http.Header
	RequestID  string
	Attempts   int
	Body       []byte
	BodyErr    error
	Stream     io.ReadCloser
	Length     int64 // of Stream; -1: not announced
	Framed     bool  // the end of Stream differs from a broken connection
}

// An invocation is the state of one call across its attempts.
type invocation struct {
	client   *Client
	call     *Call
	settings *Settings
	timeout  time.Duration // of an attempt
	ctx      context.Context
	log      *slog.Logger
	origin   *url.URL
	began    time.Time

	// State of the attempts so far, for shouldRetry and for the next attempt.
	attempts    int // handed to the network
	retries     int
	retried     map[*fault.Verdict]int // number of retries after each verdict
	credit      int                    // earned for the retry budget by a success
	wait        time.Duration          // before the next attempt
	retryDue    bool                   // another attempt was due, and has not been sent
	budgetSpent bool                   // no further attempt for want of budget

	freshToken string        // the token that replaces a refused one
	current    *attempt      // the last that counts; nil: http.Client refused the request
	resumes    time.Time     // the door has held the last attempt back until then; zero: it has not
	queued     time.Duration // of all attempts
	unsent     *attempt      // the attempt after current, if it ended before it was sent
	ambiguous  *attempt      // a write that may have been processed, and was repeated under Resubmit
}

// Do makes a call with its attempts, and ends by the deadline of ctx. Without settings, it
// has those of the client.
//
// go-retryablehttp runs the loop. RoundTrip (attempt.go) makes an attempt, and shouldRetry
// decides whether another one follows. Both keep their state in the invocation, which also
// provides the result.
//
// go-retryablehttp rewinds the body and sleeps until the context ends, and many people have
// reviewed it. Its defaults assume requests that may be repeated. Here they would do harm:
//
//   - Its CheckRetry sees only a response or an error, and repeats a POST after a broken
//     connection or a 502. A refund may be repeated only if it is proven unprocessed, so
//     shouldRetry looks at the attempt and its evidence.
//   - Its Backoff obeys any Retry-After, even one of years, and overflows. Ours is full
//     jitter, and ends the call when a wait would outlast the deadline.
//   - It closes the idle connections of its http.Client whenever a call fails. The
//     RoundTripper that it gets has no CloseIdleConnections, which prevents this.
//   - It logs requests, and its errors quote the URL. It gets no logger, and its error is
//     dropped.
//   - Its hooks do not know their call or what an attempt found. So each call has a
//     retryablehttp.Client of its own, and its hooks are methods of the invocation.
func (c *Client) Do(ctx context.Context, call *Call, settings *Settings) (res Result) {
	if ctx == nil {
		return refused(call, fault.Invalid("the context is nil"))
	}
	settings = cmp.Or(settings, c.settings)
	// Every call ends, even if its caller set no deadline. A bulk call may queue behind
	// thousands of others, so its timeout bounds the attempt and not the call.
	timeout := settings.AttemptTimeout
	if _, bounded := ctx.Deadline(); !bounded && c.service.CallTimeout > 0 {
		if call.Bulk {
			timeout = cmp.Or(timeout, c.service.CallTimeout)
		} else {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.service.CallTimeout)
			defer cancel()
		}
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, call.Method, c.base()+call.Path, nil)
	if err == nil && call.Body != nil {
		err = req.SetBody(call.Body) // kept, and rewound for each attempt
	}
	if err != nil {
		return refused(call, fault.Invalid("the request cannot be built"))
	}
	inv := &invocation{
		client: c, call: call, settings: settings, origin: req.URL, began: time.Now(), timeout: cmp.Or(timeout, forever),
		credit: earnedByCall, ctx: ctx, log: cmp.Or(settings.Logger, silent),
	}
	// A broken stream is resumed by a call of its own. This call has no attempt before it, so
	// the wait of a retry comes first.
	if call.Resume > 0 {
		wait := settings.backoff(ctx, call.Resume-1, false, 0) // the first resume is the first retry
		if await.Sleep(ctx, wait, nil) != nil {
			return refused(call, fault.Ended(ctx))
		}
		inv.event(slog.LevelInfo, "reconnect", slog.Duration("wait", wait))
	}
	// Both clients serve this call alone, because their hooks are methods of its state. All
	// calls share the transport's connections. No Jar: a cookie of one call must not reach
	// another. No Timeout: it would also bound the waits between attempts.
	retryer := retryablehttp.Client{
		HTTPClient: &http.Client{Transport: inv, CheckRedirect: inv.checkRedirect},
		RetryMax:   settings.MaxRetries,
		CheckRetry: inv.shouldRetry,
		// The default backoff would obey a Retry-After of years.
		Backoff: func(time.Duration, time.Duration, int, *http.Response) time.Duration { return inv.wait },
		// Without it, the library drops the last response and returns "giving up after n
		// attempts", with the URL in the text.
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	defer func() {
		// If the caller's code panics, for example a logger, nothing else closes the stream.
		if a := inv.current; a != nil && a.Stream != nil && res.Stream == nil {
			a.Stream.Close()
		}
	}()
	// The invocation already has the response and the error, and also what retryer drops.
	_, _ = retryer.Do(req)
	return inv.result()
}

// refused is the result of a call that ended before its first attempt.
func refused(call *Call, err error) Result {
	return Result{
		Outcome: fault.OutcomeNotSent,
		Failure: &fault.Failure{Operation: call.Operation, Err: err},
	}
}

const maxRedirects = 5

// checkRedirect follows a GET within its origin, or to a host that the caller named. It never
// follows a redirect back from such a host. Each hop is an attempt with headers of its own.
//
// The default of net/http does harm here. It turns a redirected POST into a GET, or sends a
// refund again to the target of a 307. It also sends credentials in unknown headers, such as
// x-merchant-id, to the other host.
func (inv *invocation) checkRedirect(next *http.Request, via []*http.Request) error {
	last, home := via[len(via)-1].URL, sameOrigin(next.URL, inv.origin)
	followed := home && sameOrigin(last, inv.origin) || !home && inv.settings.redirectHosts.match(next.URL)
	if !followed || next.URL.User != nil || via[0].Method != http.MethodGet || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// result reads the invocation once its loop has ended.
func (inv *invocation) result() Result {
	a := inv.current
	if a == nil {
		return refused(inv.call, fault.Invalid("the request cannot be sent"))
	}
	res := inv.resultOf(a)
	// A failed last attempt proves nothing about an earlier one, which may have been
	// processed. The caller needs the evidence of that one to find out.
	if inv.ambiguous != nil && (res.Outcome == fault.OutcomeNotSent || res.Outcome == fault.OutcomeRejected) {
		res.Outcome, res.Evidence = fault.OutcomeUnknown, inv.ambiguous.Evidence
	}
	if a.verdict != fault.Success && res.BodyErr == nil {
		res.Failure = inv.failure(a)
	}
	inv.logResult(&res, a)
	return res
}

// resultOf is the result of a call that ends with this attempt, except for its failure.
func (inv *invocation) resultOf(a *attempt) Result {
	res := a.Result
	res.Outcome, res.Attempts = a.outcome(), inv.attempts
	if a.verdict != fault.Success && inv.call.Write && res.Outcome == fault.OutcomeAccepted {
		res.BodyErr = a.reason()
	}
	return res
}

// failure describes the last response, why no other attempt followed, and whether the
// caller's context ended the call.
//
// Each step wraps the error of the step before, so errors.Is finds all of them. The text of
// the outermost error is printed.
func (inv *invocation) failure(a *attempt) *fault.Failure {
	// The error may live long; it must not keep a whole response alive.
	response := fault.Response{Header: a.Header, Body: bytes.Clone(a.Body[:min(len(a.Body), fault.MaxErrorBody)])}
	f := &fault.Failure{
		Operation:  inv.call.Operation,
		StatusCode: a.StatusCode,
		Code:       inv.loggable(a, response.Decode()),
		RequestID:  a.RequestID,
		RetryAfter: a.retryAfter(),
		Attempts:   inv.attempts,
		Err:        a.reason(),
	}
	if inv.unsent != nil && !inv.retryDue {
		f.Err = fault.NewError(inv.unsent.reason().Error(), f.Err, inv.unsent.reason())
	}
	if inv.ctx.Err() != nil && (inv.retryDue || a.verdict == fault.CallerEnded) {
		f.Err = fault.EndedBy(inv.ctx, f.Err)
	}
	if inv.ambiguous != nil && a.outcome() != fault.OutcomeUnknown {
		f.Err = fault.NewError(f.Err.Error()+", after an earlier attempt that may have been processed", f.Err)
	}
	if inv.budgetSpent {
		f.Err = fault.NewError(f.Err.Error()+"; the retry budget of the client is spent", f.Err)
	}
	last := cmp.Or(inv.unsent, a)
	// This call has no Retry-After of its own: the pause came from the response to another
	// call or attempt.
	if errors.Is(last.err, fault.ErrPaused) {
		f.RetryAfter = inv.client.throttle.Remaining(inv.call.Account)
	}
	if !inv.resumes.IsZero() {
		f.RetryAfter = max(0, time.Until(inv.resumes))
	}
	f.Err = fault.WithFacts(f.Err, fault.Facts{Verdict: a.verdict, Vouched: a.isVouched(), Response: response, Cause: last.err})
	return f
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
