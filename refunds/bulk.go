package refunds

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/transport"
)

// BulkOptions configure [Client.SubmitAll]. The zero value is a good choice for an input
// that ends.
type BulkOptions struct {
	// Concurrency is the most requests in flight, up to 10,000. Zero is 8. With 1,
	// each result is yielded before the next record is taken.
	Concurrency int

	// Ordered yields the results in input order instead of as they arrive. One slow
	// refund then holds back the results of up to a thousand behind it, and if the
	// process is killed meanwhile, all of these are unknown.
	Ordered bool

	// Grace is how long requests in flight may go on after the context has ended or
	// the loop was left, so that stopping leaves few outcomes unknown. Zero is 30
	// seconds; below zero they are canceled at once.
	Grace time.Duration

	// GiveUpAfter is how long submission pauses while the service fails, as described
	// at [Client.SubmitAll], before the rest is reported as not sent, with
	// [ErrSuspended]. Zero is 30 minutes; below zero it pauses as long as ctx allows. A
	// Retry-After can add to it, because requests in flight use up their retries first:
	// one of a minute adds up to two minutes for each request in flight.
	//
	// For an input without an end, such as a queue, set it below zero, or leave the loop
	// at ErrSuspended and call SubmitAll again later: a call that has given up still takes
	// records, and sends none of them.
	GiveUpAfter time.Duration

	// ReadAhead runs the input on a goroutine of its own, so that results are yielded
	// while it waits for its next record, as a queue does (see also GiveUpAfter, and
	// From a queue or a table in the package comment). By default it runs on the loop's
	// goroutine, and results wait until it yields or returns.
	//
	// The input must end when ctx does; SubmitAll waits up to Grace for it. If you
	// leave the loop before ctx has ended, SubmitAll does not wait for the input:
	// cancel ctx. If the input's yield returns false, its record was neither taken nor
	// sent.
	ReadAhead bool

	// Progress is called on the loop's goroutine, before each result is yielded and
	// when submission pauses and goes on. Nil is not called.
	Progress func(BulkProgress)

	// Abandoned is called on the loop's goroutine after the loop was left. It gets the
	// result of every record that was taken but not yielded. Without it, the outcomes of
	// refunds in flight are lost.
	Abandoned func(Submission, error)
}

// BulkProgress counts what a bulk submission has done so far.
type BulkProgress struct {
	Taken    int  // records taken from the input
	Done     int  // results yielded or abandoned: the sum of the next four fields
	Accepted int  // results with OutcomeAccepted
	Rejected int  // results with OutcomeRejected
	NotSent  int  // results with OutcomeNotSent
	Unknown  int  // results with OutcomeUnknown
	Requests int  // requests handed to the network, retries included
	Retries  int  // requests that repeat another one
	Paused   bool // the circuit breaker is open, and the next probe is awaited

	// Rate is the current rate of [WithAdaptiveRate], in requests a second; 0 without
	// it.
	Rate rate.Limit
}

// A Submission is what became of one record.
type Submission struct {
	// Index is the position of the record in the input, from 0. It is -1 if the error
	// ended the submission and is not about a record; the other fields are unset then,
	// and Outcome is then its zero value, OutcomeUnknown, which says nothing. Check
	// Index first.
	//
	// To find your own row: the input counts its items and, before it yields one, puts the
	// row into a map by that number. With ReadAhead the map needs a mutex. AccountID and
	// RefundID do not name a row, because they may repeat.
	Index int
	// AccountID is [Item.AccountID].
	AccountID string
	// RefundID is [Refund.RefundID]; "" for a nil Refund.
	RefundID string
	// Outcome is the outcome of the error, or [OutcomeAccepted] without an error.
	Outcome Outcome
	// Receipt is the receipt of an accepted refund; nil for any other.
	Receipt *Receipt
	// Attempts is the number of requests handed to the network; 0 if none was.
	Attempts int
}

// Format prints the index and the outcome, whatever the verb, and no id.
func (s Submission) Format(state fmt.State, verb rune) {
	text := fmt.Sprintf("submission %d: %v", s.Index, s.Outcome)
	if s.Index < 0 {
		text = "end of the submission"
	}
	transport.Format(state, verb, text)
}

// LogValue logs the index, the outcome and the attempts.
func (s Submission) LogValue() slog.Value {
	if s.Index < 0 {
		return slog.GroupValue(slog.Int("index", s.Index))
	}
	return slog.GroupValue(
		slog.Int("index", s.Index), slog.String("outcome", s.Outcome.String()), slog.Int("attempts", s.Attempts))
}

// ErrSuspended: the service kept failing for [BulkOptions.GiveUpAfter], so this record
// was not sent. Submit it again later, in another call. The error also matches the
// failure of the last probe, such as [ErrServer] or [ErrUnauthorized].
var ErrSuspended = transport.NewCondition("suspended", "submission suspended", true)

const (
	defaultConcurrency = 8
	maxConcurrency     = 10_000
	defaultGrace       = 30 * time.Second
	defaultGiveUpAfter = 30 * time.Minute
	// maxWaiting bounds, with Concurrency, the records that are held.
	maxWaiting = 1024
)

// SubmitAll submits any number of refunds of any number of accounts, each as
// [Client.Submit] does. It yields one result for each item that it takes from the input,
// as results arrive: a Receipt, or the [*OutcomeError] that Submit would return.
// It retries what Submit retries and no more: an unknown outcome is final, unless
// [WithResubmit] is given. [Items] makes the input for one account.
//
// At most [BulkOptions.Concurrency] requests are in flight, within the client's rate
// limit. An item may wait for the limiter without a time limit; each attempt then lasts
// up to [WithAttemptTimeout]. SubmitAll takes the next item only when fewer than
// Concurrency are in flight, or waiting for the limiter or a Retry-After, and fewer
// than Concurrency results are waiting. It holds at most 1,024 records plus
// Concurrency, each as its JSON or its Receipt. An unusable item, such as one with a
// nil Refund or no account, is yielded as not sent, with [ErrInvalidArgument]. Unusable
// opts end the submission.
//
// Records with the same account and RefundID are sent one after the other, in input
// order and whatever the outcome of the previous one. They count as separate records,
// such as a refund and its later status. If an earlier record has an unknown outcome,
// it may still be recorded after a later one. Before you submit it again, check whether
// the later record replaces it.
//
// # When the service fails
//
// A circuit breaker opens after five failures in a row, so an outage leaves about 4 +
// Concurrency outcomes unknown, and one more for each probe. While it is open, one
// record at a time is sent as a probe: after a second, then after delays that double up
// to two minutes, each shortened by up to half at random. The first response that is no
// failure closes it, if it is to a request that was sent after the last of the
// failures. After [BulkOptions.GiveUpAfter] the rest of the input is taken and yielded
// as not sent, with [ErrSuspended].
//
// A failure is one that the next record would meet too: every unknown outcome, every
// record that was not sent, except an unusable one, and the rejections 401, 403, 404,
// 407, 410, 429, redirects, 501 and 505. Other rejections, such as 400 and 422, are
// about their record. If the input has several accounts, 403, 404 and 410 are about the
// account, and so is 401 if the item has its own options. They count once for each
// account, so that one bad account does not stop the others. Five of them in a row open
// the circuit breaker. Then each of their records is a probe, and if any account worked
// before, the next one comes within a second: leave out the records of an account once
// it was refused.
//
// If the rate limit or a Retry-After would delay a record past ctx's deadline,
// SubmitAll stops as if the deadline had passed. It stops as well if the rate limit
// allows nothing, as a rate.Limiter with a burst of 0 does. If an item's own options
// have such a limiter, only that item fails, as not sent.
//
// # Stopping
//
// To stop, cancel ctx and go on taking results. Nothing new is sent. Records that were
// taken but not sent are yielded as not sent, with the context's error. Requests in
// flight may finish within [BulkOptions.Grace]. The last result has Index -1 and an
// [*Error] with the reason, which is the context's error or the limiter's and matches
// no outcome. Records that the input has not yielded were neither taken nor sent:
// submit these later, and not the whole input again, which is why Retryable is false
// for the error. The record for which the input's yield returns false has a result like
// any other: do not give it back to a queue. With ReadAhead it has none, because it was
// not taken. An unusable argument ends the submission in the same way, before anything
// is taken.
//
// Breaking out of the loop does the same, and hands the remaining results to
// [BulkOptions.Abandoned]. No goroutine is left, except as [BulkOptions.ReadAhead]
// says, and that of a token source that ignores its context.
//
// Input, loop and the functions of BulkOptions run on one goroutine, so they may share
// variables; only ReadAhead moves the input to another. If the caller's code panics,
// such as a token source or a limiter, the panic reaches the loop's goroutine. The
// results can be ranged over once, because ranging over them submits the refunds.
func (c *Client) SubmitAll(ctx context.Context, items iter.Seq[Item], o BulkOptions, opts ...Option) iter.Seq2[Submission, error] {
	var ranged atomic.Bool
	return func(yield func(Submission, error) bool) {
		var err error
		switch {
		case c.check() != nil:
			err = c.check()
		case ctx == nil:
			err = transport.Invalid("the context is nil")
		case items == nil:
			err = transport.Invalid("the input is nil")
		case o.Concurrency < 0 || o.Concurrency > maxConcurrency:
			err = transport.Invalid("the concurrency is %d, 0 to %d allowed", o.Concurrency, maxConcurrency)
		case ranged.Swap(true):
			err = transport.Invalid("the results were ranged over before")
		default:
			err = c.core.CheckOptions(opts)
		}
		if err != nil {
			yield(ended(err))
			return
		}
		b := newBulk(ctx, c, o, opts, yield)
		defer b.stop()
		b.run(items)
	}
}
