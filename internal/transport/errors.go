package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A condition is an error that callers test for with errors.Is, under a name that
// metrics can be counted by.
type condition struct {
	name, text string
	retryable  bool // the same call, unchanged, can succeed later
}

func (c *condition) Error() string { return c.text }

// NewCondition makes a condition that a package has beside those below.
func NewCondition(name, text string, retryable bool) error {
	return &condition{name, text, retryable}
}

// The packages expose these values under the same names. The policy says which one a
// verdict has.
var (
	ErrInvalidArgument  = NewCondition("invalid_argument", "invalid argument", false)
	ErrLocalLimit       = NewCondition("local_limit", "local limit", true)
	ErrCredential       = NewCondition("no_credential", "no credential", true)
	ErrNoResponse       = NewCondition("no_response", "no response", true)
	ErrTimeout          = NewCondition("timeout", "attempt timeout", true)
	ErrBadRequest       = NewCondition("bad_request", "bad request", false)
	ErrUnauthorized     = NewCondition("unauthorized", "unauthorized", false)
	ErrForbidden        = NewCondition("forbidden", "forbidden", false)
	ErrNotFound         = NewCondition("not_found", "not found", false)
	ErrConflict         = NewCondition("conflict", "conflict", false)
	ErrTooLarge         = NewCondition("too_large", "request too large", false)
	ErrRateLimited      = NewCondition("rate_limited", "rate limited", true)
	ErrServer           = NewCondition("server_error", "server error", true)
	ErrRedirect         = NewCondition("redirect", "redirect", false)
	ErrBadResponse      = NewCondition("bad_response", "bad response", false)
	ErrResponseTooLarge = NewCondition("response_too_large", "response too large", false)
)

// conditionOf is the first condition in the tree of err, where what a package adds
// comes before what it wraps, and a response before what kept the call from another:
// after a 503, the error of a call that ran out of time counts as a server's. The end
// of a context counts only where there is nothing else, as it says the least.
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

// A Failure is why a call failed. It is exposed as bins.Error, refunds.Error
// and updater.Error, which convert from it and so cannot drift. Its fields hold
// harmless forms alone, because fmt prints fields where it calls no method: under
// %w and %p, and in an unexported field. What the service wrote is in Response,
// behind Err.
type Failure struct {
	Operation  string
	StatusCode int
	Code       string // if it is loggable
	RequestID  string // if it is loggable
	RetryAfter time.Duration
	Attempts   int
	Err        error
}

// A Response is what the service wrote in the response that a Failure is about. It may
// hold anything, card numbers included, and is for the caller's code and no log.
type Response struct {
	Header  http.Header
	Body    []byte
	Message string          // of Body, if its shape is known
	Details json.RawMessage // of Body, if its shape is known
}

// An attemptError is the error of a call, and what it knows beyond its text of the
// attempt that it is about. Closures keep both out of the reach of fmt.
type attemptError struct {
	err   func() error
	about func() attemptFacts
}

// What follows from an attempt follows from its verdict, and not from the error's text
// or type, which packages wrap in their own.
type attemptFacts struct {
	verdict  *verdict // nil: unknown
	outcome  Outcome
	response Response
	cause    error // of the network or of the caller's own code
}

// facts are those of the attempt that f is about. If f was made by hand, they follow
// from its status, or else are unknown.
func (f *Failure) facts() attemptFacts {
	if e, ok := errors.AsType[*attemptError](f.Err); ok {
		return e.about()
	}
	// A stream that failed after a 200 did not fail for its status, and of a Failure that a
	// fake made by hand there is nothing else to go by.
	if v := statusVerdict(f.StatusCode); f.StatusCode != 0 && v != success {
		return attemptFacts{verdict: v, outcome: v.outcome}
	}
	return attemptFacts{}
}

// Response is zero if there was none, or if the Failure was made by hand.
func (f *Failure) Response() Response { return f.facts().response }

// Outcome is what became of the write that f is about.
func (f *Failure) Outcome() Outcome { return f.facts().outcome }

// Cause is the error that ended the call, as the network or the caller's own code
// made it: a transport, a token source, a limiter. Its text may hold anything.
func (f *Failure) Cause() error {
	cause := f.facts().cause
	for safe, ok := cause.(*safeError); ok && len(safe.causes()) > 0; safe, ok = cause.(*safeError) {
		cause = safe.causes()[len(safe.causes())-1] // conditions come first
	}
	return cause
}

// Condition names what went wrong, or is "other".
func (f *Failure) Condition() string { return conditionOf(Unwrap(f)).name }

// Retryable reports whether the same call, unchanged, can succeed later. What the
// policy repeats can, and what it does not repeat cannot, as it says more than a
// condition: of the hosts that gave no response, one does not exist. What a package
// added, and what ended on this side, is as its condition says.
func (f *Failure) Retryable() bool {
	c, v := conditionOf(Unwrap(f)), f.facts().verdict
	if v == nil || v == limiterRefused || v == credentialFailed || v.condition != c {
		return c.retryable
	}
	return v.retries > 0 && v != unauthorized // which is repeated with another token alone
}

func newAttemptError(err error, about attemptFacts) error {
	return &attemptError{func() error { return err }, func() attemptFacts { return about }}
}

func (e *attemptError) Error() string { return e.err().Error() }

func (e *attemptError) Unwrap() error { return e.err() }

// WithOutcome is err as the error of a write of which the outcome is known although no
// attempt tells it: a refused argument, for example, was not sent.
func WithOutcome(err error, o Outcome) error {
	return newAttemptError(err, attemptFacts{verdict: (&Failure{Err: err}).facts().verdict, outcome: o, cause: (&Failure{Err: err}).Cause()})
}

// WithCause is err as the error of a call that failed for what cause says.
func WithCause(err, cause error) error {
	return newAttemptError(err, attemptFacts{cause: cause})
}

// A safeError is a cause in words that are safe to print, and the errors that it
// stands for, whose own texts are not: the URL in a *url.Error holds an id, and
// an error of encoding/json quotes the body. errors.Is and errors.As find them;
// a closure keeps them out of the reach of fmt.
type safeError struct {
	msg    string
	causes func() []error
}

func (e *safeError) Error() string { return e.msg }

func (e *safeError) Unwrap() []error { return e.causes() }

// NewError is an error in words that are safe to print, for conditions and causes
// whose own texts are not. A condition comes first, and the error that an operating
// system, a library or the caller made comes last: Condition and Cause rest on it. A nil
// is left out.
func NewError(msg string, causes ...error) error {
	causes = slices.DeleteFunc(causes, func(cause error) bool { return cause == nil })
	return &safeError{msg, func() []error { return causes }}
}

// Invalid is a refusal of an argument, before anything was sent. The text must
// not quote the argument.
func Invalid(format string, args ...any) error {
	return NewError(fmt.Sprintf(format, args...), ErrInvalidArgument)
}

// reason is why the attempt failed, in safe words and with the errors behind
// them.
func (a *attempt) reason() error {
	msg, cause := a.verdict.msg, a.err
	switch {
	case a.verdict == attemptTimedOut:
		// A transport that knows nothing of causes reports the end of an attempt as a
		// cancellation, which would be taken for the caller's.
		cause = nil
	case a.verdict == callerEnded && a.sent, a.verdict == responseRefused:
		cause = foreign(a.err) // net/http returns what the caller gave as the cause
	}
	if own, ok := errors.AsType[*safeError](cause); ok {
		msg = own.msg
	} else if refusal := handshakeRefusal(cause); refusal != "" {
		msg = "no response: " + refusal
	} else if errno, ok := errors.AsType[syscall.Errno](cause); ok {
		msg += ": " + errno.Error()
	}
	return NewError(msg, a.verdict.condition, cause)
}

// Ended is the error of a call whose context ended while it waited for something
// other than an attempt.
func Ended(ctx context.Context) error { return endedBy(ctx, nil) }

// endedBy says that the caller's context ended the call, and keeps what the
// last attempt had come to.
func endedBy(ctx context.Context, last error) error {
	ended, msg := ctx.Err(), "the deadline passed"
	if errors.Is(ended, context.Canceled) {
		msg = "canceled by the caller"
	}
	if known, ok := errors.AsType[*safeError](last); ok && errors.Is(last, ErrCredential) {
		msg += ": " + known.msg // that no attempt was made is not the service's doing
	}
	// The attempt's own timeout cancels, and nobody else may seem to have.
	if errors.Is(last, context.Canceled) && !errors.Is(ended, context.Canceled) {
		last = nil
	}
	return NewError(msg, ended, last, foreign(context.Cause(ctx)))
}

// foreign is an error of the caller's: the cause of the end of a context, or what its
// check says of a response. It may be the error of another call, as errgroup gives it:
// errors.Is finds it, and what this package reads from errors, such as their condition
// and response, is not its own.
func foreign(err error) error {
	return Without(err, func(target any) bool {
		switch target.(type) {
		case **condition, **attemptError, **safeError:
			return true
		}
		return false
	})
}

// Without is err without the targets of errors.Is and errors.As that it hides.
func Without(err error, hides func(target any) bool) error {
	if err == nil {
		return nil
	}
	return &filteredError{func() error { return err }, hides}
}

type filteredError struct {
	err   func() error // a closure, out of the reach of fmt
	hides func(target any) bool
}

// Error does not quote what the caller wrote.
func (*filteredError) Error() string { return "the cause" }

func (e *filteredError) Is(target error) bool { return !e.hides(target) && errors.Is(e.err(), target) }

func (e *filteredError) As(target any) bool { return !e.hides(target) && errors.As(e.err(), target) }

// Unwrap is the body of the Unwrap methods. An Error that a test made by hand
// still matches by its status.
func Unwrap(f *Failure) error {
	if f.Err == nil && f.StatusCode != 0 {
		return statusVerdict(f.StatusCode).condition
	}
	return f.Err
}

// Describe is the text of an error. It quotes nothing that the service or the
// caller wrote, except a code and a request id of harmless form. They are looked at
// once more here, as a Failure may have been made by hand.
func Describe(pkg string, f *Failure) string {
	described := pkg
	if f.Operation != "" {
		described += ": " + f.Operation
	}
	err := Unwrap(f)
	if known, ok := errors.AsType[*safeError](err); ok {
		described += ": " + known.msg
	} else if err != nil && f.StatusCode == 0 {
		described += ": failed"
	}
	var facts []string
	fact := func(known bool, format string, args ...any) {
		if known {
			facts = append(facts, fmt.Sprintf(format, args...))
		}
	}
	fact(f.StatusCode != 0, "status %s", strings.TrimSpace(fmt.Sprint(f.StatusCode, " ", http.StatusText(f.StatusCode))))
	fact(Loggable(f.Code) != "", "code %s", f.Code)
	fact(Loggable(f.RequestID) != "", "request id %s", f.RequestID)
	fact(f.RetryAfter > 0, "Retry-After: %v", f.RetryAfter.Round(time.Second))
	fact(f.Attempts == 1, "1 attempt")
	fact(f.Attempts > 1, "%d attempts", f.Attempts)
	if len(facts) > 0 {
		described += " (" + strings.Join(facts, ", ") + ")"
	}
	return described
}

// Format is the body of the Format methods: whatever the verb, an error prints
// its text and never its fields. Without it, %+v of a struct that holds an error by
// value would print them.
func Format(state fmt.State, verb rune, text string) {
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	fmt.Fprint(state, text)
}

// decode reads what an error body says, in the shape documented for the download
// endpoint, {"error":{code,message,details}}, or in one of two shapes that occur in
// the field. A body of any other kind leaves r as it is: reporting a failure never
// fails over its details.
func (r *Response) decode() (code string) {
	body := object(r.Body)
	said, message, details := body["code"], body["message"], body["details"]
	if inner := object(body["error"]); inner != nil {
		said, message, details = inner["code"], inner["message"], inner["details"]
	} else if inner := object(body["errorDetails"]); inner != nil {
		message, details = inner["message"], body["errorDetails"]
	}
	if string(details) != "null" {
		r.Details = details
	}
	r.Message = text(message)
	return text(said)
}

// ErrorInPlaceOf tells whether a body has the documented error, and has not the
// member that a success would have.
func ErrorInPlaceOf(member string, body []byte) bool {
	members := errorAmong(body)
	_, found := members[member]
	return members != nil && !found
}

// Malformed says where a body stopped being the documented JSON. The error of
// encoding/json is not kept, as it quotes the body.
func Malformed(err error) error {
	msg := malformedResponse.msg
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		msg += fmt.Sprintf(": a syntax error at byte %d", syntax.Offset)
	} else if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mismatch.Field != "" {
		msg += fmt.Sprintf(": %s has another type", mismatch.Field)
	}
	return NewError(msg)
}

// Unusable says in safe words why a body is not the documented one.
func Unusable(msg string) error {
	return NewError(malformedResponse.msg + ": " + msg)
}
