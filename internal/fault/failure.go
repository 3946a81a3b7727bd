package fault

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// A condition is an error that callers test for with errors.Is. Metrics count by its name.
type condition struct {
	name, text string
	retryable  bool  // the same call, unchanged, can succeed later
	kind       error // a condition that it is a case of, for errors.Is
}

func (c *condition) Error() string { return c.text }

func (c *condition) Unwrap() error { return c.kind }

// NewCondition makes a condition of a single package.
func NewCondition(name, text string, retryable bool) error {
	return &condition{name: name, text: text, retryable: retryable}
}

// NewCase makes a condition that callers test for as kind. Metrics count it by a name of its own.
func NewCase(kind error, name, text string) error {
	return &condition{name, text, kind.(*condition).retryable, kind}
}

// The packages expose these values under the same names. The policy maps verdicts to them.
var (
	ErrInvalidArgument = NewCondition("invalid_argument", "invalid argument", false)
	ErrLocalLimit      = NewCondition("local_limit", "local limit", true)
	ErrSuspended       = NewCondition("suspended", "suspended", true)
	ErrCredential      = NewCondition("no_credential", "no credential", true)
	ErrNoResponse      = NewCondition("no_response", "no response", true)
	ErrTimeout         = NewCondition("timeout", "attempt timeout", true)
	ErrBadRequest      = NewCondition("bad_request", "bad request", false)
	ErrUnauthorized    = NewCondition("unauthorized", "unauthorized", false)
	ErrForbidden       = NewCondition("forbidden", "forbidden", false)
	ErrNotFound        = NewCondition("not_found", "not found", false)
	ErrTooLarge        = NewCondition("too_large", "request too large", false)
	ErrRateLimited     = NewCondition("rate_limited", "rate limited", true)
	ErrServer          = NewCondition("server_error", "server error", true)
	ErrBadResponse     = NewCondition("bad_response", "bad response", false)
	ErrNotReady        = NewCondition("not_ready", "not ready", true)
	ErrNotBegun        = NewCondition("not_begun", "not begun", true)
)

// Callers find these two by the status.
var (
	ErrConflict = NewCase(ErrBadRequest, "conflict", "conflict")
	ErrRedirect = NewCase(ErrBadResponse, "redirect", "redirect")
)

// ErrOversize is why the rest of a response was not read.
var ErrOversize = errors.New("the response exceeds the size limit")

// conditionOf returns the first condition in the tree of err. A condition that a package adds
// comes before the wrapped ones, and a response before a missed deadline: if time ran out
// after a 503, the condition is a server error. The end of a context counts only if there is
// no other condition.
func conditionOf(err error) *condition {
	if c, ok := errors.AsType[*condition](err); ok {
		return c
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &condition{name: "canceled", retryable: true}
	case errors.Is(err, context.DeadlineExceeded):
		return &condition{name: "deadline_exceeded", retryable: true}
	}
	return &condition{name: "other"}
}

// A Failure is why a call failed. It is exposed as bins.Error, refunds.Error and
// updater.Error, which convert from it and so have the same fields. The fields hold only
// printable forms, because fmt prints fields without calling methods under %w and %p, and in
// an unexported field. Err leads to the Response, which holds the service's own words.
type Failure struct {
	Operation  string
	StatusCode int
	Code       string // if it is loggable
	RequestID  string // if it is loggable
	RetryAfter time.Duration
	Attempts   int
	Err        error
}

// A Response is the text of the response behind a Failure. It may hold anything, including
// card numbers. Never log it.
type Response struct {
	Header  http.Header
	Body    []byte
	Message string // from Body, if its shape is known
}

// attempted carries the facts of an attempt in the error tree of its call. It is a closure,
// so fmt cannot print them.
type attempted func() Facts

func (attempted) Error() string { return "attempted" }

// Decisions rest on the verdict, and not on the error's text or type, because packages wrap
// errors in their own.
type Facts struct {
	Verdict  *Verdict // nil: unknown
	Vouched  bool     // the outcome is the caller's word
	Response Response
	Cause    error // of the network or of the caller's own code
}

// facts returns the facts of the attempt behind f. If f was made by hand, they follow from
// its status, or are unknown.
func (f *Failure) facts() Facts {
	if facts, ok := errors.AsType[attempted](f.Err); ok {
		return facts()
	}
	// A Stream can fail after a 200, and tests build Failures by hand; in both cases only the
	// error or the status tells.
	if v := statusVerdict(f.StatusCode); f.StatusCode != 0 && v != Success {
		return Facts{Verdict: v}
	}
	return Facts{}
}

// Response is zero if there was no response, or if the Failure was made by hand. The response to
// another request, because of which this one was not sent, is not its own.
func (f *Failure) Response() Response {
	if f.StatusCode == 0 {
		return Response{}
	}
	return f.facts().Response
}

// IsFinal reports whether the write must not be repeated within its call, although it was not
// processed: the caller has said that of its status, which need not pass by itself.
func (f *Failure) IsFinal() bool {
	facts := f.facts()
	return facts.Vouched && !facts.Verdict.WillPass()
}

// Scope says which requests would fail alike. It is OfRequest for a call that ended before
// its first attempt, unless a limit or a pause ended it.
func (f *Failure) Scope() Scope {
	if v := f.facts().Verdict; v != nil {
		return v.scope
	}
	return OfRequest
}

// MayBeItsOwn reports whether the request itself may be why it failed, although others may fail alike: it was
// sent, and no limit and no 503 says that there is too much to do.
func (f *Failure) MayBeItsOwn() bool {
	v := f.facts().Verdict
	if v == nil || v.scope != OfOutage || f.StatusCode == http.StatusServiceUnavailable {
		return false
	}
	switch v {
	case LimiterRefused, CredentialFailed, hostLookupFailed, connectFailed, proxyRefused, RateLimited, signedLimit:
		return false
	}
	return true
}

// Cause is the original error that ended the call, from the network or from the caller's
// code: a transport, a token source, a limiter. Its text may hold anything.
func (f *Failure) Cause() error {
	cause := f.facts().Cause
	for safe, ok := cause.(*safeError); ok && len(safe.causes()) > 0; safe, ok = cause.(*safeError) {
		cause = safe.causes()[len(safe.causes())-1] // conditions come first
	}
	return cause
}

// Condition names the condition, or is "other".
func (f *Failure) Condition() string { return ConditionOf(Unwrap(f)) }

// ConditionOf names the condition of an error, or is "other".
func ConditionOf(err error) string { return conditionOf(err).name }

// Retryable reports whether the same call, unchanged, can succeed later. The verdict decides
// if it set the condition, because it knows more: a host that does not exist gives no
// response, either. Otherwise the condition decides.
func (f *Failure) Retryable() bool {
	c, v := conditionOf(Unwrap(f)), f.facts().Verdict
	if v == nil || v.condition != c {
		return c.retryable
	}
	return (c.retryable || v.Retries > 0) && (v.scope == OfRequest || v.scope == OfOutage)
}

// IsDirect reports whether a call failed because of this very cause, and not because of an error
// that holds it, such as that of another call.
func IsDirect(err, cause error) bool {
	own, ok := (&Failure{Err: err}).facts().Cause.(*safeError)
	return ok && slices.Contains(own.causes(), cause)
}

// WithFacts returns err as the error of a call, with the safe text of err.
func WithFacts(err error, facts Facts) error {
	return NewError(cmp.Or(SafeText(err), "failed"), attempted(func() Facts { return facts }), err) // its own facts come first
}

// After returns the error of f, which ended a call without an attempt of its own, after one that had
// the last response.
func (f *Failure) After(last *Failure) error {
	facts := f.facts()
	facts.Response = last.facts().Response
	return WithFacts(f.Err, facts)
}

// WithCause returns err as the error of a call that failed because of cause.
func WithCause(err, cause error) error {
	return WithFacts(err, Facts{Cause: cause})
}

// Unwrap implements the Unwrap methods. An Error that a test made by hand matches by its
// status.
func Unwrap(f *Failure) error {
	if f.Err == nil && f.StatusCode != 0 {
		return statusVerdict(f.StatusCode).condition
	}
	return f.Err
}
