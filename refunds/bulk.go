package refunds

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// BulkOptions configure [Client.SubmitAll]. The zero value suits a file or a table. For a
// queue, set ReadAhead, and GiveUpAfter below zero.
type BulkOptions struct {
	// Concurrency is the most requests in flight, up to 10,000. Zero is 8. With 1, each
	// result is yielded before the next record is taken, unless the record is sent again.
	Concurrency int

	// Ordered yields the results in input order instead of as they arrive. One slow refund
	// then holds back up to 1,024 results, and Concurrency more, which a kill would lose.
	Ordered bool

	// Grace is how long requests in flight may go on after ctx has ended or the loop was
	// left, so that stopping leaves few outcomes unknown. Zero is 30 seconds: choose less than the
	// time between SIGTERM and SIGKILL. Below zero they are canceled at once.
	Grace time.Duration

	// GiveUpAfter is how long the service may keep failing before SubmitAll ends with
	// [ErrSuspended], also if it accepts some refunds meanwhile. Zero is 30 minutes. Below zero it
	// never gives up.
	GiveUpAfter time.Duration

	// HoldFor is how long a record may wait to be sent, after the input has yielded it. Then it
	// is not sent, or not once more, with [ErrSuspended] and [ActionResubmit]. A request in flight goes on. Zero
	// is no limit, or 2 minutes with ReadAhead, because after a while a queue delivers its
	// messages to another worker. Below zero is no limit. In a pause, a record that ReadAhead has
	// not taken yet has its result with the next probe, up to two minutes later.
	HoldFor time.Duration

	// ReadAhead runs the input on a goroutine of its own, so that results are yielded while
	// it waits for its next record, as a queue does. By default it runs on the loop's
	// goroutine, and results wait until it yields or returns.
	//
	// The input must end when ctx does: up to Grace, SubmitAll waits for that before its last
	// error. Cancel ctx before you leave the loop. If yield returns false in the input, the
	// record was neither taken nor sent: give it back to the queue. Without ReadAhead, that
	// record has a result.
	ReadAhead bool

	// Progress is called before each result is yielded, and when submission pauses and goes
	// on.
	Progress func(BulkProgress)

	// Abandoned gets the results that were not yielded when the loop was left. With nil, the
	// outcomes of refunds in flight are lost.
	Abandoned func(Submission)
}

// BulkProgress counts what a bulk submission has done so far.
type BulkProgress struct {
	Taken    int // records taken from the input
	Done     int // results yielded or abandoned: the sum of the next four
	Accepted int // results with OutcomeAccepted
	Rejected int // results with OutcomeRejected
	NotSent  int // results with OutcomeNotSent
	Unknown  int // results with OutcomeUnknown
	Requests int // requests handed to the network, retries included
	Retries  int // requests that repeat another one

	// Level is how many requests the client sends, at most, in the time of one response. It adapts
	// to what the service accepts. At 0.1 it sends one in ten such times.
	Level float64
	// Reason is [Error.Condition] of the failure that lowered Level last; "" if none did.
	Reason string
	// Paused reports that the service is down: one request at a time is sent as a probe. A wait that
	// the service asks for with a Retry-After is none; the log has it.
	Paused bool
	// PausedUntil is when the next probe is due; zero without a pause.
	PausedUntil time.Time
}

// A Submission is what became of one record.
type Submission struct {
	Index     int      // position of the record in the input, from 0
	Ref       any      // Item.Ref
	AccountID string   // Item.AccountID
	RefundID  string   // Refund.RefundID; "" without a Refund
	Outcome   Outcome  // outcome of Err; OutcomeAccepted if it is nil
	Receipt   *Receipt // receipt of an accepted refund; nil for any other
	Err       error    // nil for an accepted refund, and otherwise an *Error
	Attempts  int      // requests handed to the network
}

// Format prints the index and the outcome, under any verb, and no id.
func (s Submission) Format(state fmt.State, verb rune) {
	fault.Format(state, verb, fmt.Sprintf("submission %d: %v", s.Index, s.Outcome))
}

// MarshalText returns the text, so that JSON logs hold no more than it. To keep a
// submission, store its fields.
func (s Submission) MarshalText() ([]byte, error) { return fmt.Append(nil, s), nil }

// LogValue logs the index, the outcome and the attempts.
func (s Submission) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("index", s.Index), slog.String("outcome", s.Outcome.String()), slog.Int("attempts", s.Attempts))
}

// ErrSuspended: the service or the token source keeps failing, or the record has waited for
// [BulkOptions.HoldFor], so it was not sent, or not sent once more. [ActionOf] says which: if it
// was not sent, submit it again later, after RetryAfter if it is set. Submit returns it during a
// pause, and SubmitAll after HoldFor or [BulkOptions.GiveUpAfter]; there it also matches the last
// failure, such as [ErrServer].
var ErrSuspended = fault.NewCondition("suspended", "submission suspended", true)

const (
	defaultConcurrency = 8
	maxConcurrency     = 10_000
	defaultGrace       = 30 * time.Second
	defaultGiveUpAfter = 30 * time.Minute
	defaultHoldFor     = 2 * time.Minute // with ReadAhead
	// maxWaiting bounds, with Concurrency, the records that are held.
	maxWaiting = 1024
)

// SubmitAll submits any number of refunds of any number of accounts, each as [Client.Submit]
// does. It yields one result for each item that it takes from the input, as results arrive:
// [Submission.Action] says what to do about it. [Items] makes the input for one account.
//
// The error beside a result is nil until SubmitAll ends early. It is then the reason, and
// comes once and last, beside a Submission that is empty: look at the error first. It matches no
// outcome and is not Retryable, because the same call would submit the earlier records again. The
// rest of the input was not taken: submit that later.
//
// SubmitAll holds at most 1,024 records, and Concurrency more. It sends a record again
// only if it was proven not to be recorded, as after a 429 that a limiter signs or without a connection, or with
// [WithResubmit]. An unusable item, such as one without a Refund or an account, is yielded as
// not sent, with [ErrInvalidArgument].
//
// Records with the same account and RefundID, such as a refund and its later status, are sent
// one after the other in input order, after any outcome of the previous one.
//
// # When the service fails
//
// Submission pauses, and takes one record for each probe: see the package
// comment. After [BulkOptions.GiveUpAfter], what was taken is yielded as not sent, and
// SubmitAll ends. Both errors match [ErrSuspended].
//
// If the first requests of a client fail because of the URL, the credential or the account,
// SubmitAll ends after a few of them. What was taken is not sent, with [ActionFixSetup]. With
// GiveUpAfter below zero SubmitAll goes on: the Example of BulkOptions (ReadAhead) says when to stop it.
//
// A 403, 404 or 410 is about its account, and so is a 401 if the item has its own credential. While
// another account works, it is not delayed, and each record of the refused one is sent. If no account
// has worked, SubmitAll takes up to 1,024 records to look for one, of about 32 accounts, and then ends.
// If the account that is refused is the only one that has worked, SubmitAll pauses after ten refusals
// in a row, and those of the requests in flight.
//
// # Stopping
//
// To stop, cancel ctx and go on taking results. Nothing new is taken or sent. Requests in
// flight may finish within [BulkOptions.Grace]. What was taken but not sent is yielded as not
// sent, with the context's error. SubmitAll also stops if the rate limit or a Retry-After
// would delay a record past ctx's deadline.
//
// If you break out of the loop, SubmitAll stops in the same way, and [BulkOptions.Abandoned]
// gets the remaining results. Then yield returns false in the input. The record that it was called
// with has a result like any other, unless ReadAhead is set.
//
// Input, loop and the functions of BulkOptions run on one goroutine; only ReadAhead moves the
// input to another. A panic of your code reaches the loop. Range over the results once.
func (c *Client) SubmitAll(ctx context.Context, items iter.Seq[Item], o BulkOptions, opts ...CallOption) iter.Seq2[Submission, error] {
	var ranged atomic.Bool
	return func(yield func(Submission, error) bool) {
		settings, err := c.settings(opts)
		switch {
		case err != nil:
		case ctx == nil:
			err = fault.Invalid("the context is nil")
		case items == nil:
			err = fault.Invalid("the input is nil")
		case o.Concurrency < 0 || o.Concurrency > maxConcurrency:
			err = fault.Invalid("the concurrency is %d, 0 to %d allowed", o.Concurrency, maxConcurrency)
		case ranged.Swap(true):
			err = fault.Invalid("the results were ranged over before")
		}
		if err != nil {
			yield(ended(err))
			return
		}
		b := newBulk(ctx, c, o, settings, yield)
		defer b.stop()
		b.run(items)
	}
}
