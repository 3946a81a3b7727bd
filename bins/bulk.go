package bins

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/transport"
)

// BulkOptions configure [Client.LookupAll]. The zero value is a good choice for an input
// that ends.
type BulkOptions struct {
	// Enhanced is sent with every request: see [LookupRequest.Enhanced].
	Enhanced *bool

	// Concurrency is the most requests in flight, up to 10,000. Zero is 8.
	Concurrency int

	// Unordered yields results as they complete. The input is read on the same
	// goroutine, so a slow input still delays them: see ReadAhead. By default results
	// keep input order, so one retried request delays the results behind it. Once
	// 32,768 inputs are held, it delays further requests too.
	Unordered bool

	// PrefixLength keeps card numbers in the process: of every identifier that may be a
	// card number, only the first PrefixLength digits are sent, 1 to 11. Any identifier
	// with 12 digits or more may be one, whatever stands between the digits and in
	// whatever script. Do not set it if the input holds tokens: the digits of a token
	// would be looked up as if they were a BIN. 8 digits are a BIN, but card features can
	// differ up to the tenth digit. If the service distinguishes cards by more digits than
	// are sent, a card gets the result of another card. Zero sends identifiers unchanged.
	PrefixLength int

	// Ranges lets one result serve every identifier between its BINMin and BINMax, so
	// that card numbers need one request for each range instead of one for each number.
	// It assumes that all cards of a range have the same result, which is not
	// documented. A range is used only if it holds every card number that begins with the
	// identifier sent, so Ranges helps little with PrefixLength. Items without a card have
	// no range: an unknown card number is sent each time.
	Ranges bool

	// Memory caches results. Nil makes a [MemoryCache] of 32,768 entries for this bulk
	// lookup alone, and uses it as soon as more than 1 in 16 inputs repeats. Set a larger
	// one if more identifiers than that repeat.
	Memory *MemoryCache

	// Cache is a second cache, outside the process. It is asked for what Memory does not
	// have, and stores the results of requests. Nil is none.
	Cache Cache

	// GiveUpAfter is how long the lookup pauses while the service fails, as described
	// at [Client.LookupAll], before it gives up: it then sends nothing more, and each
	// card without a result fails with [ErrSuspended]. For an input that does not end,
	// set it below zero, or leave the loop at ErrSuspended and call LookupAll again.
	// Zero is 30 minutes; below zero it pauses as long as ctx allows. A Retry-After can
	// add to it, because requests in flight use up their retries first: one of a minute
	// adds up to three minutes for each request in flight.
	GiveUpAfter time.Duration

	// ReadAhead runs the input on a goroutine of its own, for an input that blocks, such
	// as a queue. Results then do not wait for the next input, and a batch that is not
	// full is sent 10 milliseconds after its first card. The input must end when ctx
	// does, and may share with the loop only what is safe for concurrent use. Inputs are
	// taken long before their results are yielded, so a lookup that ends early, with Index
	// -1, loses those taken: see Stopping at [Client.LookupAll]. For an input that does not
	// end, see GiveUpAfter. By default the input runs on the loop's goroutine, and a batch
	// that is not full is sent when the input ends.
	ReadAhead bool

	// Progress is called on the loop's goroutine: after every request, when the lookup
	// pauses and goes on, and every few thousand results. Nil is not called.
	Progress func(BulkProgress)
}

// BulkProgress counts what a bulk lookup has done so far.
type BulkProgress struct {
	Done     int  // results yielded, errors included
	Distinct int  // identifiers put into requests, which may still be in flight
	Cached   int  // results yielded without a request of their own: from a cache, or repeats, of failed cards too
	Requests int  // requests of batches that have ended, retries included
	Retries  int  // requests that repeat another one
	Errors   int  // results yielded with an error
	Paused   bool // the service fails, and the lookup waits

	// Rate is the current rate of [WithAdaptiveRate], in requests a second; 0 without
	// it.
	Rate rate.Limit

	// Conflicts is [MemoryCache.Conflicts] of the memory in use.
	Conflicts int64
}

// A BulkResult is the result for one input. r.Result.Card() returns the card of a
// BulkResult r.
type BulkResult struct {
	// Index is the position of the input, from 0. It is -1 if the error beside it ended
	// the lookup, and the other fields are then unset.
	Index int
	// Input is the identifier from the input. It is masked when printed.
	Input Identifier
	// Result is the service's item; you may change it. If Reused is set, PANOrToken and
	// CorrelationID are "", and so is BIN if the input does not begin with it.
	Result Result
	// Reused is true if no request was sent for this input: the result is from an
	// earlier input or from a cache.
	Reused bool
}

// LogValue logs the index, the masked input, what [Result.LogValue] logs, and Reused.
func (r BulkResult) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("index", r.Index), slog.Any("input", r.Input), slog.Any("result", r.Result), slog.Bool("reused", r.Reused))
}

// ErrMissing: the response has no item for this card, or it is unclear which item is
// this card's. Look the card up alone, with [Client.Lookup].
var ErrMissing = transport.NewCondition("missing", "the response holds no item for this card", true)

// ErrSuspended: the service kept failing for [BulkOptions.GiveUpAfter], so this card
// has no result. The error also matches the failure of the last request, such as
// [ErrServer]. Look the card up again later.
var ErrSuspended = transport.NewCondition("suspended", "lookup suspended", true)

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
	// maxKeptBytes bounds the responses that are kept as text.
	maxKeptBytes = 2 << 20
	// reportEvery bounds how many results pass without a call of Progress.
	reportEvery = 4096
	// readAheadWindow is how long a batch waits for further input with ReadAhead.
	readAheadWindow = 10 * time.Millisecond
)

// LookupAll looks up any number of cards. It yields one result for each input, in input
// order unless [BulkOptions.Unordered] is set. The options are those of each request.
// examples/bulk can be resumed after a kill.
//
// It sends 50 cards in a request, and keeps up to [BulkOptions.Concurrency] requests in
// flight within the client's rate limit. It reads input only as fast as results are
// taken, and holds at most 32,768 inputs.
//
// A repeated identifier is not sent again while the lookup remembers its result. It
// remembers those of the inputs that it holds and the last 2 MiB of responses. If Memory,
// Cache or Ranges is set, or if more than 1 in 16 inputs repeats, it remembers as many
// results as Memory has room for. A card number (12 digits or more) is sent again once the
// earlier input is no longer held, unless PrefixLength or Ranges is set.
//
// If one identifier begins with another, such as 40000201 and 400002, the two go into
// different requests, so that neither gets the other's item.
//
// An error with an Index of 0 or more is about that card, and the loop goes on: the
// card has no item ([ErrMissing]) or one that cannot be read ([ErrBadResponse]), or its
// request failed, which fails every card in it. An error with Index -1 ends the loop,
// because every further request would fail with it: 401, 403, 404, 407, 410, a
// redirect, an unusable argument or credential, a token source that fails before this
// lookup has had a result, an unknown host name, an untrusted certificate, a proxy that
// forbids the connection, the end of ctx, a rate limit or a Retry-After that would
// outlast ctx, or a rate limit that allows nothing. An unknown card is not an error:
// see [Result.Card].
//
// Any other failure that every request meets, such as a 400, or an HTML page from a
// wrong base URL before the first result, fails all cards one by one. If none of the
// first few hundred has a result, leave the loop.
//
// # When the service fails
//
// The lookup pauses after five failures in a row. A failure is a request, or a retry of
// one, that met 429, a 5xx status, a timeout, no response or a failing limiter; or, if
// the service has sent results before, a failing token source, or a page or another
// response that is not the documented one. During a pause one request at a time is sent
// as a probe: after a second, then after delays that double up to two minutes, each
// shortened by up to half at random. When the service responds, the lookup goes on and
// sends what failed again. So an outage fails no card unless it lasts for
// [BulkOptions.GiveUpAfter]: the rest of the input is then taken, and cards without a
// result are yielded with [ErrSuspended].
//
// A request that fails while others succeed is sent again, after the others. Its cards
// fail when it has failed eight times while others succeeded, or eight times in a row
// with no other request between.
//
// # Stopping
//
// Leaving the loop stops the lookup and cancels requests in flight. So does an error
// with Index -1; if its reason is a rate limit or a Retry-After that would outlast ctx,
// requests in flight finish first. Inputs beyond the last result may have been read by
// then, and some of them sent. No goroutine is left, except those of idle connections,
// and of a cache or token source that ignores its context.
//
// Input, loop and Progress run on one goroutine, so they may share variables, unless
// [BulkOptions.ReadAhead] is set. If the caller's code panics, such as a token source, a
// limiter, a cache or an HTTP transport, the panic reaches the loop's goroutine.
//
// A request is sent when it is full. To look up a few cards at a time and wait for them,
// use a [Loader].
func (c *Client) LookupAll(ctx context.Context, cards iter.Seq[string], o BulkOptions, opts ...Option) iter.Seq2[BulkResult, error] {
	return func(yield func(BulkResult, error) bool) {
		b, err := newBulk(ctx, c, cards, o, opts, yield)
		if err != nil {
			yield(BulkResult{Index: -1}, err)
			return
		}
		b.run(cards)
	}
}
