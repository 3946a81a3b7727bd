package bins

import (
	"context"
	"errors"
	"iter"
)

// BulkOptions configure [Client.LookupAll]. The zero value is good.
type BulkOptions struct {
	// Enhanced is sent with every request, as [LookupRequest.Enhanced].
	Enhanced *bool

	// Concurrency is how many requests may be in flight. Zero is 8.
	Concurrency int

	// PrefixLength sends only the first so many digits of what may be a card
	// number, which is anything that holds 12 digits or more, a token too, so that
	// no card number leaves the process. It costs precision where the service tells cards apart by more
	// digits: 8 of them are the BIN, and features differ up to the tenth. Zero
	// sends identifiers as they are.
	PrefixLength int

	// Ranges assumes that one answer serves every identifier between its BINMin
	// and BINMax, so that card numbers need requests by the range and not by the
	// number. The service does not document that. Bounds that are no range, or do
	// not hold the identifier that was asked for, are not used, and items without a
	// card have none: an unknown card number is asked for each time.
	Ranges bool

	// Cache is where answers are looked for before, and kept after, a request. Nil
	// is a [MemoryCache] of its own for each bulk lookup. In front of any other
	// cache there is one too.
	Cache Cache

	// Progress is called after every request, and every some thousand results, by
	// the goroutine that runs the loop.
	Progress func(BulkProgress)
}

// BulkProgress counts what a bulk lookup has done so far.
type BulkProgress struct {
	Done     int // results yielded
	Distinct int // identifiers that were sent to the service
	Cached   int // results that needed no identifier to be sent
	Requests int // sent, repetitions included
	Retries  int // of them
	Errors   int // results yielded with an error

	// Conflicts counts the ranges that contradicted another one's answer, as
	// [MemoryCache.Conflicts] does.
	Conflicts int64
}

// A BulkResult is the answer for one input.
type BulkResult struct {
	// Index is the position of the input, from 0; -1 if the error that comes with
	// it ended the lookup.
	Index int
	// Card is the input.
	Card Identifier
	// Result is the service's item, a copy of the receiver's own. Reused for
	// another input, its PANOrToken and CorrelationID are "", and so is its BIN
	// where the input does not begin with it.
	Result Result
	// Reused tells that the answer was not asked for this input alone.
	Reused bool
}

// ErrMissing: the service answered, and left this card out, or it could not be
// told which item is this card's. Ask for it alone.
var ErrMissing = errors.New("the answer holds no item for this card")

const (
	defaultConcurrency = 8
	// maxWaiting bounds the inputs that wait for an answer before them.
	maxWaiting = 1 << 15
	// maxLookups bounds the answers that wait with them, at rest.
	maxLookups = 20_000
	// reportEvery bounds how many results pass without a call of Progress.
	reportEvery = 4096
)

// LookupAll looks up any number of cards, and yields one result for each, in the
// order of the input. It holds at most 32,768 inputs and never all of them, sends
// each identifier once for as long as the window and the cache remember it, 50 in
// a request, and keeps [BulkOptions.Concurrency] requests in flight within the
// client's rate limit. It reads input only as fast as results are taken.
//
// The error that comes with a result is why this card has no answer, such as the
// failure of its request or [ErrMissing]; the loop goes on. A failure that every
// further request would meet ends it, with that error and Index -1: 401, 403,
// 404, a redirect, an unusable argument or credential, an unknown host or
// certificate, or the end of ctx. That the service knows nothing of a card is no
// error: see [Result.Card].
//
// Leaving the loop stops all work; requests in flight are canceled, and no
// goroutine is left. Requests are filled as input comes: for a few cards at a
// time, whose answers are waited for, use a [Loader].
func (c *Client) LookupAll(ctx context.Context, cards iter.Seq[string], o BulkOptions) iter.Seq2[BulkResult, error] {
	return func(yield func(BulkResult, error) bool) {
		b, err := newBulk(ctx, c, o, yield)
		if err != nil {
			yield(BulkResult{Index: -1}, err)
			return
		}
		defer b.stop()
		for card := range cards {
			if !b.add(card) {
				return
			}
		}
		b.finish()
	}
}
