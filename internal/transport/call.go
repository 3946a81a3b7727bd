package transport

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/carddata/carddata-go/internal/drift"
	"github.com/hashicorp/go-retryablehttp"
)

// A Call is one operation, as its service describes it.
type Call struct {
	Operation string            // for errors and logs: "lookup"
	Method    string            //
	Route     string            // the path's template, for logs
	Path      string            // the escaped path, below the base address
	Headers   func(http.Header) // sets the call's own headers
	Body      []byte            // nil: none; never changed after the call began
	Write     bool              // processed twice, it does harm
	Stream    bool              // hand the body of a 200 over unread
	Partial   bool              // the call asks for a range: a 206 is a 200 to it
	Offset    int64             // where the range begins, which the response limit counts
	Resume    int               // the call resumes a stream, for the nth time in a row: it begins with a backoff

	// Conditional calls ask for what has changed: a 304 is a success, without a body.
	Conditional bool

	// Bulk calls are many at a time. They may queue for the limiter beyond the
	// CallTimeout, which bounds their attempts where nothing else does.
	Bulk bool
	// RequestContext ends the request on the wire. The call's own context then ends
	// what has not begun: waits and further attempts. Nil: that ends both.
	RequestContext context.Context

	// Identifiers are the caller's own in Path and Body, such as card numbers. A code or
	// a request id of the service's that repeats one is not printed. Nil: none.
	Identifiers func() []string

	// Drift is what Decode found that the contract does not have.
	Drift drift.Report
	// Decode reads the body of a success, and keeps nothing of it. Its error makes the
	// response malformed.
	Decode func(body []byte) error
	// KeepBody is given the body of a success once it is decoded, until ReleaseBody. Nil:
	// nobody keeps it.
	KeepBody func(*bytes.Buffer)
	// Observe is called on the call's goroutine before each attempt is sent, with how
	// many there were, and after each that failed, with its failure. Nil: it is not.
	Observe func(attempts int, failed *Failure)
}

// JSONHeaders sets the headers of a call that sends and reads JSON.
func JSONHeaders(h http.Header) {
	values := []string{"application/json", "application/json"} // one allocation for both
	h["Content-Type"], h["Accept"] = values[:1:1], values[1:]
}

// A Result is what became of a call. Failure is nil exactly when it succeeded;
// a write succeeds by its status, whatever happened to the body of the response.
type Result struct {
	Failure    *Failure
	Outcome    Outcome
	Evidence   Evidence
	StatusCode int
	Header     http.Header
	RequestID  string
	Attempts   int
	Body       []byte
	BodyErr    error
	Stream     io.ReadCloser
	Length     int64 // of Stream; -1: not announced
	Framed     bool  // the end of Stream can be told from a broken connection
	Settings   *Settings
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

	// Of the attempts so far, for shouldRetry and for the next one.
	attempts    int // handed to the network
	retries     int
	retried     map[*verdict]int // how often after each verdict
	credit      int              // what a success gives the retry budget
	wait        time.Duration    // before the next attempt
	retryDue    bool             // another attempt was due, and has not been sent
	budgetSpent bool             // which kept the call from another attempt

	freshToken string   // the token that replaces a refused one
	current    *attempt // the last that counts; nil: http.Client refused the request
	unsent     *attempt // the one after it, if it ended before it was sent
	ambiguous  *attempt // a write that may have been processed, and was repeated all the same
}

// Do makes a call with its attempts, and ends by the deadline of ctx.
//
// The loop itself is go-retryablehttp's; what it calls is ours, and is in this
// file: RoundTrip makes an attempt (in attempt.go), shouldRetry decides whether
// there is another one, and the invocation keeps what the two have to tell each
// other. Its results are read from there.
func (c *Client) Do(ctx context.Context, call *Call, opts []Option) (res Result) {
	if ctx == nil {
		return refused(call, Invalid("the context is nil"))
	}
	settings, err := c.settings, error(nil)
	if len(opts) > 0 {
		settings, err = c.settings.with(opts, true)
	}
	if err != nil {
		return refused(call, err)
	}
	// Every call ends, even if its caller set no deadline. One of a bulk call may queue
	// behind thousands, and what has to end there is the attempt.
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
		err = req.SetBody(call.Body) // which is kept, and rewound for each attempt
	}
	if err != nil {
		return refused(call, Invalid("the request cannot be built"))
	}
	inv := &invocation{
		client: c, call: call, settings: settings, origin: req.URL, began: time.Now(), timeout: cmp.Or(timeout, forever),
		credit: earnedByCall, ctx: ctx, log: cmp.Or(settings.Logger, silent),
	}
	call.Drift.Listening = inv.log.Enabled(ctx, slog.LevelWarn)
	// A stream that broke is resumed by a call of its own, which has no attempt before
	// it. What would have been a retry waits as one.
	if call.Resume > 0 {
		wait := settings.backoff(ctx, call.Resume-1, false, 0) // the first resume is the first retry
		inv.event(slog.LevelInfo, "resume", slog.Duration("wait", wait))
		if Sleep(ctx, wait) != nil {
			return refused(call, Ended(ctx))
		}
	}
	// Both clients serve this call alone, as their hooks are methods of its state;
	// the connections are the transport's, which all calls share. No Jar: a cookie
	// of one call must not travel with another's. No Timeout: it would also bound
	// the waits between attempts.
	retryer := retryablehttp.Client{
		HTTPClient: &http.Client{Transport: inv, CheckRedirect: inv.checkRedirect},
		RetryMax:   settings.MaxRetries,
		CheckRetry: inv.shouldRetry,
		// The library's own backoff would obey a Retry-After of years.
		Backoff: func(time.Duration, time.Duration, int, *http.Response) time.Duration { return inv.wait },
		// Without it, the last response would be dropped for "giving up after n
		// attempts", in a text that quotes the URL.
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	defer func() {
		// Nobody else would close it if the caller's own code panics, such as a logger.
		if a := inv.current; a != nil && a.Stream != nil && res.Stream == nil {
			a.Stream.Close()
		}
	}()
	// What it returns is the invocation's already, together with what it drops.
	_, _ = retryer.Do(req)
	return inv.result()
}

// refused is the result of a call that ended before its first attempt.
func refused(call *Call, err error) Result {
	return Result{
		Outcome: OutcomeNotSent,
		Failure: &Failure{Operation: call.Operation, Err: WithOutcome(err, OutcomeNotSent)},
	}
}

const maxRedirects = 5

// checkRedirect follows nothing but a GET within its origin, or to a host that the
// caller has named, from which there is no way back. Each hop is an attempt of its
// own, with headers of its own.
//
// Left to itself, net/http would do harm here: it turns a redirected POST into
// a GET, or sends a refund a second time to wherever a 307 points; and it takes
// headers that it does not know as credentials, such as x-merchant-id, along to
// another host.
func (inv *invocation) checkRedirect(next *http.Request, via []*http.Request) error {
	last, home := via[len(via)-1].URL, sameOrigin(next.URL, inv.origin)
	followed := home && sameOrigin(last, inv.origin) || !home && inv.settings.redirectHosts.match(next.URL)
	if !followed || next.URL.User != nil || via[0].Method != http.MethodGet || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// shouldRetry is called after each attempt, as CheckRetry. It looks at the
// attempt and not at its arguments, which are what net/http made of it.
//
// In this order: what the response says to all calls of the client; whether the policy
// would repeat this attempt; whether there is time; whether a token has to be replaced;
// and last whether the retry budget has a retry left, so that none is taken that is not
// made.
func (inv *invocation) shouldRetry(ctx context.Context, _ *http.Response, _ error) (bool, error) {
	a := inv.current
	if a == nil || inv.unsent != nil {
		return false, nil // its turn never came
	}
	retryAfter := a.retryAfter()
	if retryAfter > 0 && !a.away && (a.verdict == rateLimited || a.verdict == serverUnavailable) {
		inv.client.throttle.cooldown(min(retryAfter, maxRetryAfter))
	}
	if inv.call.Observe != nil && a.verdict != success { // who then finds the client throttled
		inv.call.Observe(inv.attempts, inv.failure(a, a.outcome()))
	}
	// A service that says "not ready" or refuses is not overloaded, as one that fails may be.
	if a.verdict == success || a.StatusCode == http.StatusAccepted || a.StatusCode/100 == 4 && a.verdict.outcome == OutcomeRejected && a.verdict.retries == 0 {
		inv.client.budget.give(inv.credit)
		return false, nil
	}
	// Who is told to come back in an hour is not kept waiting for it.
	if !inv.mayRetry(a) || retryAfter > maxRetryAfter {
		return false, nil
	}
	// The error then says that a retry was due and the caller ended it; after a response
	// that is final, such as a 400, the end of the context is nobody's concern.
	if ctx.Err() != nil {
		inv.retryDue = true
		return false, nil
	}
	cost := costRetry
	inv.wait = inv.settings.backoff(ctx, inv.retries, a.verdict == rateLimited, retryAfter)
	if a.verdict == unauthorized {
		if !inv.refreshToken(a) {
			return false, nil
		}
		inv.wait, cost = 0, costFreshAuth // the service is well, and was only shown the wrong token
	}
	// A wait that the deadline would cut short is not begun: the caller gets the
	// response at once, instead of a timeout later.
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= inv.wait {
		return false, nil
	}
	if a.verdict == attemptTimedOut {
		cost = costTimeout
	}
	// Whose retry is refused here learns so from its error and the log: without that, a
	// call that ends after its first attempt would look like a setting gone wrong.
	if !inv.client.budget.take(cost) {
		inv.event(slog.LevelWarn, "retry budget spent") // about more than this call: none is retried
		inv.budgetSpent = true
		return false, nil
	}
	// From here on the call cannot prove that the write was not processed, whatever its
	// last attempt comes to.
	if inv.call.Write && a.outcome() == OutcomeUnknown {
		inv.ambiguous = a
	}
	inv.credit = cost // a retry that helps costs nothing
	if inv.retries++; inv.retries == 1 {
		inv.retried = map[*verdict]int{}
	}
	inv.retried[a.verdict]++
	inv.retryDue = true
	inv.logRetry(a)
	return true, nil
}

// mayRetry asks the policy how often, and for a write its outcome whether at all: one
// whose outcome is unknown is never repeated, however often the policy would allow it,
// unless the caller has vouched that a second one does no harm.
//
// Three numbers bound the retries: of the call as a whole, of this verdict within the
// call, and, in the retry budget, of all calls of the client.
func (inv *invocation) mayRetry(a *attempt) bool {
	switch outcome := a.outcome(); {
	case !inv.call.Write, outcome == OutcomeNotSent, outcome == OutcomeRejected, outcome == OutcomeUnknown && inv.settings.RepeatUnknown:
		return inv.retries < inv.settings.MaxRetries && inv.retried[a.verdict] < a.verdict.retries
	}
	return false
}

// refreshToken asks for another token. There is no point in sending the one that
// was just refused.
func (inv *invocation) refreshToken(a *attempt) bool {
	if a.token == "" {
		return false // to another host, or without a credential
	}
	token, err := inv.settings.credential.token(inv.ctx, a.token)
	if err != nil {
		// To the calls that come next, which are not sent without a token, the source's
		// failure is all there is. This one, which saw the 401, is told the same.
		a.verdict, a.err = credentialFailed, NewError(err.Error(), ErrUnauthorized, err)
		return false
	}
	inv.freshToken = token
	return token != a.token
}

// result reads the invocation once its loop has ended.
func (inv *invocation) result() Result {
	a := inv.current
	if a == nil {
		return refused(inv.call, Invalid("the request cannot be sent"))
	}
	res := inv.resultOf(a)
	// That the last attempt came to nothing says nothing of one before it, which may have
	// been processed. Its evidence is what the caller needs to find out.
	if inv.ambiguous != nil && (res.Outcome == OutcomeNotSent || res.Outcome == OutcomeRejected) {
		res.Outcome, res.Evidence = OutcomeUnknown, inv.ambiguous.Evidence
	}
	if a.verdict != success && res.BodyErr == nil {
		res.Failure = inv.failure(a, res.Outcome)
	}
	inv.logResult(&res, a)
	return res
}

// resultOf is the result of a call that ends with this attempt, but for its failure.
func (inv *invocation) resultOf(a *attempt) Result {
	res := a.Result
	res.Outcome, res.Attempts, res.Settings = a.outcome(), inv.attempts, inv.settings
	if a.verdict != success && inv.call.Write && res.Outcome == OutcomeAccepted {
		res.BodyErr = a.reason()
	}
	return res
}

// failure tells all that is known: what the last response was, why there was no
// other attempt, and whether the caller's context is to blame.
//
// Its error is built from the inside: the attempt, then what kept the call from another
// one, then what ended the call, then what the caller has to know beside it. The
// outermost text is printed, and errors.Is finds all of them.
func (inv *invocation) failure(a *attempt, outcome Outcome) *Failure {
	// The error may live long; it must not keep a whole response alive.
	response := Response{Header: a.Header, Body: bytes.Clone(a.Body[:min(len(a.Body), maxErrorBody)])}
	f := &Failure{
		Operation:  inv.call.Operation,
		StatusCode: a.StatusCode,
		Code:       inv.loggable(a, response.decode()),
		RequestID:  a.RequestID,
		RetryAfter: a.retryAfter(),
		Attempts:   inv.attempts,
		Err:        a.reason(),
	}
	// No response asked for a wait here, but an earlier one may have, of all calls.
	if a.verdict == limiterRefused {
		f.RetryAfter = inv.client.throttle.remaining()
	}
	if inv.unsent != nil && !inv.retryDue {
		f.Err = NewError(inv.unsent.reason().Error(), f.Err, inv.unsent.reason())
	}
	if inv.ctx.Err() != nil && (inv.retryDue || a.verdict == callerEnded) {
		f.Err = endedBy(inv.ctx, f.Err)
	}
	if inv.ambiguous != nil && a.outcome() != OutcomeUnknown {
		f.Err = NewError(f.Err.Error()+", after an earlier attempt that may have been processed", f.Err)
	}
	if inv.budgetSpent {
		f.Err = NewError(f.Err.Error()+"; the retry budget of the client is spent", f.Err)
	}
	last := cmp.Or(inv.unsent, a)
	f.Err = newAttemptError(f.Err, attemptFacts{a.verdict, outcome, response, last.err})
	return f
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
