package bins

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// BulkOptions configure [Client.LookupAll]. The zero value suits an input of BINs or tokens
// that ends. For card numbers set PrefixLength, and for a queue ReadAhead and GiveUpAfter.
type BulkOptions struct {
	// Enhanced is sent with every request: see [LookupRequest.Enhanced].
	Enhanced *bool

	// Concurrency is the most requests in flight, up to 10,000. Zero is 8.
	Concurrency int

	// Unordered yields results as they complete. By default they keep input order, so a
	// request that is sent again delays the results behind it.
	Unordered bool

	// PrefixLength keeps card numbers in the process: of an identifier with 12 digits or more,
	// in any notation and script, only the first PrefixLength digits (1 to 11) are sent. Zero
	// sends identifiers unchanged. How many the service needs is not documented: set 8, and set
	// 10 only if your account's results differ with it. Do not set it if the input holds tokens:
	// their digits would be sent as a BIN.
	PrefixLength int

	// Memory caches results. Nil makes a [MemoryCache] of 32,768 entries for this lookup
	// alone: set a larger one if more identifiers than that repeat.
	Memory *MemoryCache

	// Cache is a second cache, outside the process, for what Memory does not have. Nil is
	// none.
	Cache Cache

	// GiveUpAfter is how long the service may be down before the lookup ends with
	// [ErrSuspended]. Zero is 30 minutes; below zero it waits as long as ctx allows, as a queue
	// wants it.
	GiveUpAfter time.Duration

	// ReadAhead is for an input that blocks, such as a queue. It runs the input on a goroutine
	// of its own, so results do not wait for the next input, and a batch that is not full is
	// sent after 10 milliseconds. An input that still waits for its source when the loop has
	// ended takes one more card: its yield returns false, so give that card back.
	ReadAhead bool

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

	// Level is the most requests in a round trip. It adapts to what the service accepts; 0.1
	// is one request in ten round trips.
	Level float64
	// Reason is [Error.Condition] of the failure that lowered Level last; "" if none did.
	Reason string
	// Paused reports that the service is down: one request at a time is sent as a probe.
	Paused bool
	// PausedUntil is when the next probe is due; zero without a pause.
	PausedUntil time.Time
}

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

// ErrSuspended: LookupAll ended before this card had a result, or because the service was down
// for [BulkOptions.GiveUpAfter]. [Loader.Load] returns it while the service is down. The error
// also matches the reason, such as [ErrServer] or [context.Canceled]. Look the card up again
// later, after RetryAfter if it is set.
var ErrSuspended = fault.NewCondition("suspended", "lookup suspended", true)

const (
	defaultConcurrency = 8
	maxConcurrency     = 10_000
	defaultGiveUpAfter = 30 * time.Minute
	// bulkEntries holds the BINs that the cards of even a large merchant have.
	bulkEntries = 1 << 15
	// maxHeld bounds the inputs that wait for their result, or for one before it.
	maxHeld = 1 << 15
	// maxPending bounds the identifiers on their way, and so the results that wait
	// with those inputs. With few requests in flight there are fewer.
	maxPending = 20_000
	// maxRefused refused requests, without one that had a result, end a lookup.
	maxRefused = 8
	// reportEvery bounds how many results pass without a call of Progress.
	reportEvery = 4096
	// readAheadWindow is how long a batch waits for further input with ReadAhead.
	readAheadWindow = 10 * time.Millisecond
)

// LookupAll looks up any number of cards, 50 in a request. It yields one result for each
// input, in input order unless [BulkOptions.Unordered] is set, and holds at most 32,768
// inputs. opts are those of each request. [LookupResponse] says how a card gets its item.
//
// A repeated identifier is not sent again while it is in flight, and while its result is in the
// last 2 MiB of responses or in Memory. Results of card numbers (12 digits or more) are only
// remembered with PrefixLength.
//
// # Errors
//
// The error of one card is in its [BulkResult.Err]. The sequence yields an error once, last, if
// the lookup ends early: return it. All inputs that were taken have been yielded by then, those
// without a result with [ErrSuspended]. The rest of the input is not taken.
//
// The lookup ends early where every further request would fail: after the end of ctx, an
// unusable argument or credential, 401, 403, 404, 407, 410, 501, 505, a redirect, a wrong host
// name, certificate, port or proxy, a rate limit or a Retry-After beyond the deadline, and
// GiveUpAfter. It also ends if the token source fails before the first result, or if the first
// eight requests are refused, such as by 400 or with an HTML page. A request that is refused later
// fails its own cards.
//
// # When the service fails
//
// After 429, a 5xx status, a timeout, no response, a response that is not the documented one,
// or a failing limiter or token source, the cards are sent again, however often:
// [WithMaxRetries] does not count here. Only a batch that keeps failing while others succeed
// fails its cards; with 429 and 503 it does so only after GiveUpAfter. To compare, the lookup may
// send a known card again.
//
// The lookup begins with ten requests in flight, and adapts to what the service accepts, and to
// how long it takes. If you know the service's rate limit, set [WithRateLimit]: without it, as
// little as seven tenths of a limit may be used. While the service is down, one request at a time
// is sent as a probe: after a second, and then after delays that double up to two minutes. After
// repeated outages, it can take five minutes until the lookup is at full speed again, and 35 if
// the service goes on failing requests at random.
//
// # Stopping
//
// Leaving the loop cancels requests in flight. Inputs beyond the last result may have been
// taken by then: to lose none, cancel ctx and go on to the end of the loop. Input, loop and
// Progress run on one goroutine, unless ReadAhead is set.
func (c *Client) LookupAll(ctx context.Context, cards iter.Seq[string], o BulkOptions, opts ...Option) iter.Seq2[BulkResult, error] {
	return func(yield func(BulkResult, error) bool) {
		b, err := newBulk(ctx, c, cards, o, opts, yield)
		if err != nil {
			yield(BulkResult{}, err)
			return
		}
		b.run(cards)
	}
}
