package fault

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/carddata/carddata-go/internal/mask"
)

// A safeError has a text that is safe to print. Its causes may have unsafe texts: a
// *url.Error quotes the URL, which holds an id, and an error of encoding/json quotes the
// body. errors.Is and errors.As find the causes. A closure hides them from fmt.
type safeError struct {
	msg    string
	causes func() []error
}

func (e *safeError) Error() string { return e.msg }

func (e *safeError) Unwrap() []error { return e.causes() }

// SafeText is the safe text of an error, and "" if it has none.
func SafeText(err error) string {
	if known, ok := errors.AsType[*safeError](err); ok {
		return known.msg
	}
	return ""
}

// NewError returns an error with a safe text, for conditions and causes that may have unsafe
// texts. Put a condition first, and the original error of the operating system, a library or
// the caller last: Condition and Cause rely on this order. Nil causes are dropped.
func NewError(msg string, causes ...error) error {
	causes = slices.DeleteFunc(causes, func(cause error) bool { return cause == nil })
	return &safeError{msg, func() []error { return causes }}
}

// Invalid refuses an argument before anything was sent. The text must not quote the argument.
func Invalid(format string, args ...any) error {
	return NewError(fmt.Sprintf(format, args...), ErrInvalidArgument)
}

// Require returns nil if ok, and otherwise a refusal that does not quote the argument.
func Require(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return Invalid(format, args...)
}

// Reason is why an attempt failed, in safe words and with the errors behind them. Sent says
// whether the attempt was handed to the network.
func (v *Verdict) Reason(cause error, sent bool) error {
	msg := v.Text
	switch {
	case v == AttemptTimedOut:
		// Some transports ignore causes and report a timed-out attempt as a cancellation.
		// Drop that, because it would look like the caller's.
		cause = nil
	case v == CallerEnded && sent, v == ResponseRefused:
		cause = Foreign(cause) // net/http returns the cause that the caller gave
	}
	if text := SafeText(cause); text != "" {
		msg = text
	} else if refusal := handshakeRefusal(cause); refusal != "" {
		msg = "no response: " + refusal
	} else if errno, ok := errors.AsType[syscall.Errno](cause); ok {
		msg += ": " + errno.Error()
	}
	return NewError(msg, v.condition, cause)
}

// Without returns err, but errors.Is and errors.As do not find the targets that hides
// reports.
func Without(err error, hides func(target any) bool) error {
	if err == nil {
		return nil
	}
	return &filteredError{func() error { return err }, hides}
}

type filteredError struct {
	err   func() error // a closure, which hides it from fmt
	hides func(target any) bool
}

// Error does not quote the caller's text.
func (*filteredError) Error() string { return "the cause" }

func (e *filteredError) Is(target error) bool { return !e.hides(target) && errors.Is(e.err(), target) }

func (e *filteredError) As(target any) bool { return !e.hides(target) && errors.As(e.err(), target) }

// Describe is the text of an error. It quotes nothing from the service or the caller, except
// a code and a request id that look harmless. It checks both again, because a Failure may be
// made by hand.
func Describe(pkg string, f *Failure) string {
	described := pkg
	if f.Operation != "" {
		described += ": " + f.Operation
	}
	err := Unwrap(f)
	if text := SafeText(err); text != "" {
		described += ": " + text
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
	fact(f.RetryAfter > 0, "retry after %v", (f.RetryAfter + time.Second - 1).Truncate(time.Second)) // who waits less is too early
	fact(f.Attempts == 1, "1 attempt")
	fact(f.Attempts > 1, "%d attempts", f.Attempts)
	if len(facts) > 0 {
		described += " (" + strings.Join(facts, ", ") + ")"
	}
	return described
}

// Format implements the Format methods. Under every verb, an error prints its text and never
// its fields. Without it, %+v of a struct that holds an error by value would print them.
func Format(state fmt.State, verb rune, text string) {
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	fmt.Fprint(state, text)
}

// Loggable returns a code or an id of the service if it looks like one and cannot be a card
// number, and otherwise "".
func Loggable(s string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
	if s == "" || len(s) > maxLoggable || strings.Trim(s, letters) != "" || mask.MayHoldCardNumber(s) {
		return ""
	}
	return s
}

const maxLoggable = 128
