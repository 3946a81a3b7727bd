package bins

import (
	"context"
	"errors"
	"iter"
	"log/slog"
)

// BulkOptions configure [Client.LookupAll]. The zero value is good.
type BulkOptions struct {
	// Enhanced is sent with every request, as [LookupRequest.Enhanced].
	Enhanced *bool

	// Concurrency is how many requests may be in flight, 10,000 at most. Zero is 8.
	Concurrency int

	// Unordered yields each result as soon as it is there and the input lets it,
	// which is read by the same goroutine. In order, a request that has to be repeated
	// holds up all results behind it, and where there are many requests a second it
	// soon holds up the requests too, as no more than 32,768 inputs are held.
	Unordered bool

	// PrefixLength sends only the first so many digits, at most 11, of what may be a
	// card number, so that none leaves the process: of anything that holds 12 digits
	// or more, in whatever notation or script, a token too. 8 digits are a BIN, and
	// features differ up to the tenth: where the service tells cards apart by more
	// digits than are sent, answers are a neighbour's. Zero sends identifiers as
	// they are.
	PrefixLength int

	// Ranges assumes that one answer serves every identifier between its BINMin
	// and BINMax, so that card numbers need requests by the range and not by the
	// number. The service does not document that. Bounds that are no range, or do
	// not hold all that begins with what was sent, are not used; so a prefix gains
	// little by it. Items without a card have no range: an unknown card number is
	// asked for each time.
	Ranges bool

	// Cache is where answers are looked for before, and kept after, a request. Nil
	// is a [MemoryCache] of its own for each bulk lookup, of 32,768 entries; give a
	// larger one where more identifiers than that come again and again. In front of
	// any other cache there is one too.
	Cache Cache

	// Progress is called after every request, and every some thousand results, by
	// the goroutine that runs the loop.
	Progress func(BulkProgress)
}

// BulkProgress counts what a bulk lookup has done so far.
type BulkProgress struct {
	Done     int // results yielded
	Distinct int // identifiers that were given to requests, which may still be on their way
	Cached   int // results that needed no identifier to be sent
	Requests int // that have ended, repetitions included
	Retries  int // of them
	Errors   int // results yielded with an error

	// Conflicts counts the ranges that contradicted another one's answer, as
	// [MemoryCache.Conflicts] does.
	Conflicts int64
}

// A BulkResult is the answer for one input. What the service knows of the card is
// in Result.Card().
type BulkResult struct {
	// Index is the position of the input, from 0; -1 if the error that comes with
	// it ended the lookup.
	Index int
	// Input is the identifier that this is the answer for. Reveal reads it, and Equal
	// compares it.
	Input Identifier
	// Result is the service's item, a copy of the receiver's own. Where it is
	// Reused, PANOrToken and CorrelationID are "", and so is a BIN with which the
	// input does not begin.
	Result Result
	// Reused tells that no request asked for this input: the answer is that of an
	// earlier one, or of the cache.
	Reused bool
}

// LogValue logs the index, the input masked and whether there is a card.
func (r BulkResult) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("index", r.Index), slog.Any("input", r.Input), slog.Any("result", r.Result), slog.Bool("reused", r.Reused))
}

// ErrMissing: the service answered, and left this card out, or it could not be
// told which item is this card's. Ask for it alone, with [Client.Lookup].
var ErrMissing = errors.New("the answer holds no item for this card")

const (
	defaultConcurrency = 8
	// bulkEntries holds the BINs that the cards of even a large merchant have.
	bulkEntries    = 1 << 15
	maxConcurrency = 10_000
	// maxWaiting bounds the inputs that wait for an answer before them.
	maxWaiting = 1 << 15
	// maxLookups bounds the answers that wait with them, at rest.
	maxLookups = 20_000
	// maxWhole bounds those among them that do not rest.
	maxWhole = 500
	// reportEvery bounds how many results pass without a call of Progress.
	reportEvery = 4096
)

// LookupAll looks up any number of cards, and yields one result for each, in the
// order of the input, unless that is to be [BulkOptions.Unordered]. It holds at most
// 32,768 inputs and never all of them, sends each identifier once for as long as the
// window and the cache remember it, 50 in a request, and keeps
// [BulkOptions.Concurrency] requests in flight within the client's rate limit. It
// reads input only as fast as results are taken.
//
// The error that comes with a result is why this card has no answer, such as the
// failure of its request, which fails all its cards, or [ErrMissing]; the loop goes
// on. A failure that every
// further request would meet ends it, with that error and Index -1: 401, 403,
// 404, a redirect, an unusable argument or credential, an unknown host or
// certificate, or the end of ctx. That the service knows nothing of a card is no
// error: see [Result.Card].
//
// Input, loop and Progress run on one goroutine, so that they may share what they
// like; what a token source, a limiter or an HTTP transport panics with reaches it,
// too. Leaving the loop stops all work; requests in flight are canceled, and no
// goroutine is left but those of idle connections. Requests are filled as input
// comes: for a few cards at a time, whose answers are waited for, use a [Loader].
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
