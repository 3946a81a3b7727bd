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

	// PrefixLength keeps card numbers in the process: of an identifier with 12 decimal digits or
	// more, of any script and in any groups, only the first PrefixLength digits (1 to 11) are sent.
	// Zero sends identifiers unchanged. How many digits the service needs is not documented: set 8,
	// and set 10 only if your account's results differ with it. Digits count wherever they are, so
	// those of a token would be sent as a BIN. If the input has tokens too, leave it zero, and cut the
	// card numbers before you yield them: only you know them from a token of digits.
	PrefixLength int

	// Memory caches results. Nil makes a [MemoryCache] of 64 MiB for this lookup alone: set a
	// larger one if more than some 20,000 identifiers repeat.
	Memory *MemoryCache

	// Cache is a second cache, outside the process, for what Memory does not have. Nil is
	// none.
	Cache Cache

	// GiveUpAfter is how long nothing may have worked before LookupAll ends with [ErrSuspended].
	// Zero is 30 minutes. Below zero it never gives up.
	GiveUpAfter time.Duration

	// Progress is called on the loop's goroutine: after every request, and every few
	// thousand results. Nil is not called.
	Progress func(BulkProgress)
}

// BulkProgress says what a bulk lookup has done so far, and how it sees the service.
type BulkProgress struct {
	Done     int // results yielded, errors included
	Distinct int // identifiers put into requests, which may still be in flight
	Cached   int // results yielded without a request of their own
	Requests int // requests that have ended
	Retries  int // of them, those that repeat another one
	Errors   int // results yielded with an error
	Unread   int // members of the items received that could not be read: see [Result.Unread]

	// Stats are those of this lookup. In a pause, because the service is down, one request at a time is sent as a
	// probe. A wait that the service asks for with a Retry-After is none; the log has it.
	Stats
}

// Paused reports that the service is down.
func (p BulkProgress) Paused() bool { return !p.PausedUntil.IsZero() }

// A BulkResult is the result for one input: see [BulkResult.Card].
type BulkResult struct {
	// Index is the position of the input, from 0. It leads back to your row: see the Example
	// of BulkResult.
	Index int
	// Input is the identifier from the input. It is masked when printed.
	Input Identifier
	// Result is the service's item; you may change it.
	Result Result
	// Reused is true if the result is from an earlier input or from a cache. Its PANOrToken
	// and CorrelationID are then "", and so is its BIN if the input does not begin with it.
	Reused bool
	// Err says why there is no result, an [*Error]; nil if there is one. It matches
	// [ErrInvalidArgument] for an empty or unusable card, [ErrBadResponse] if the item is no
	// object, [ErrMissing], [ErrSuspended], or what the request failed with.
	Err error
}

// Card returns the card, or the error in Err, or that of [Result.Card]: an [*ItemError] if the
// card is unknown.
func (r *BulkResult) Card() (*Card, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	return r.Result.Card()
}

// LogValue logs the index, the masked input, what [Result.LogValue] logs, Reused and Err.
func (r BulkResult) LogValue() slog.Value {
	attrs := []slog.Attr{slog.Int("index", r.Index), slog.Any("input", r.Input), slog.Any("result", r.Result), slog.Bool("reused", r.Reused)}
	if r.Err != nil {
		attrs = append(attrs, slog.Any("error", r.Err))
	}
	return slog.GroupValue(attrs...)
}

// ErrMissing: the response has no item for this card, or it is unclear which one it is. Look
// the card up alone, with [Client.Lookup], which sends all digits that it gets: cut a card
// number yourself.
var ErrMissing = fault.NewCondition("missing", "the response holds no item for this card", true)

// ErrSuspended: the card has no result, because LookupAll has ended early, or because the service is
// down or answers 401, and [Loader.Load] does not wait. Look it up again later, after
// RetryAfter if it is set. The error also matches the reason, such as [ErrServer], [ErrUnauthorized] or
// [context.Canceled]. The last error of LookupAll says whether something must be corrected first; it
// matches ErrSuspended itself if the service was down for [BulkOptions.GiveUpAfter].
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
