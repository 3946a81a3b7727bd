package bins

import (
	"errors"
	"log/slog"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// BulkOptions configure [Client.LookupAll]. The zero value suits BINs and tokens. For card
// numbers set PrefixLength.
type BulkOptions struct {
	// Enhanced is sent with every request: see [LookupRequest.Enhanced].
	Enhanced *bool

	// Concurrency is the most requests in flight, up to 10,000. Zero is 8.
	Concurrency int

	// PrefixLength is how many digits, 1 to 11, are sent of an identifier with 12 digits or more, so that
	// card numbers stay in the process. How many the service needs is not documented: set 8, or 10 if
	// the results differ. It would cut a token of 12 digits or more, too. Zero sends identifiers unchanged.
	PrefixLength int

	// Memory caches results. Nil makes a [MemoryCache] for this lookup: set a larger one if more than
	// some 20,000 identifiers repeat.
	Memory *MemoryCache

	// Cache is a second cache, outside the process, for what Memory does not have. Nil is none.
	Cache Cache

	// GiveUpAfter is how long nothing may have worked before LookupAll ends with [ErrSuspended].
	// Zero is 30 minutes. Below zero it never gives up.
	GiveUpAfter time.Duration

	// Progress, if not nil, is called after every request, and every few thousand results.
	Progress func(BulkProgress)
}

// BulkProgress says what a bulk lookup has done, and how it sees the service.
type BulkProgress struct {
	Done     int // results yielded, errors included
	Distinct int // identifiers put into requests, which may still be in flight
	Cached   int // results yielded without a request of their own
	Requests int // requests that have ended
	Retries  int // of them, those that repeat another one
	Errors   int // results yielded with an error
	Unread   int // members of the items received that could not be read: see [Result.Unread]

	Stats // of this lookup
}

// A BulkResult is the result for one input: see [BulkResult.Card].
type BulkResult struct {
	// Index is the position of the input, from 0. The Example of BulkResult leads it back to a row.
	Index int
	// Input is the identifier from the input, masked when printed.
	Input Identifier
	// Result is the service's item; you may change it.
	Result Result
	// Reused is true if the result is from an earlier input or from a cache. Its PANOrToken
	// and CorrelationID are then "", and so is its BIN if the input does not begin with it.
	Reused bool
	// Err is an [*Error] that says why there is no result; nil if there is one. Besides what a request
	// can fail with, it matches [ErrInvalidArgument] for a card that is empty, longer than 4,096 bytes
	// or not valid UTF-8, [ErrBadResponse] for an item that is no object, [ErrMissing] or [ErrSuspended].
	Err error
}

// Card returns the card, or else Err or the error of [Result.Card].
func (r *BulkResult) Card() (*Card, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	return r.Result.Card()
}

// LogValue logs what [Result.LogValue] logs, with the index, the masked input, Reused and Err.
func (r BulkResult) LogValue() slog.Value {
	attrs := []slog.Attr{slog.Int("index", r.Index), slog.Any("input", r.Input), slog.Any("result", r.Result), slog.Bool("reused", r.Reused)}
	if r.Err != nil {
		attrs = append(attrs, slog.Any("error", r.Err))
	}
	return slog.GroupValue(attrs...)
}

// ErrMissing: the response has no item for this card, or it is unclear which one it is. Look the card up
// alone with [Client.Lookup].
var ErrMissing = fault.NewCondition("missing", "the response holds no item for this card", true)

// ErrSuspended: the card was not looked up, because the service is down or answers 401, or because
// LookupAll has ended early. Look it up again later. The error also matches the reason, such as
// [ErrServer], [ErrUnauthorized] or [context.Canceled].
var ErrSuspended = fault.ErrSuspended

// suspendedBy is the error of a lookup that was not sent because of another failure. If somebody has
// to correct something first, that failure is its condition.
func suspendedBy(failure error, msg string) error {
	if failed, ok := errors.AsType[*Error](failure); ok && !failed.Retryable() {
		return fault.NewError(msg, failure, ErrSuspended)
	}
	return fault.NewError(msg, ErrSuspended, failure)
}

const (
	defaultConcurrency = 8
	maxConcurrency     = 10_000
	defaultGiveUpAfter = 30 * time.Minute
	// maxHeld bounds the inputs that wait for their result, or for one before it.
	maxHeld = 1 << 15
	// maxPending bounds the identifiers on their way, and so the results that wait
	// with those inputs. With few requests in flight there are fewer.
	maxPending = 20_000
	// reportEvery bounds how many results pass without a call of Progress.
	reportEvery = 4096
)

func bulkError(err error) *Error { return &Error{Operation: "lookup all", Err: err} }
