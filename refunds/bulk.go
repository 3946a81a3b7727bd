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

// BulkOptions configure [Client.SubmitAll]. The zero value suits a file or a table.
type BulkOptions struct {
	// Concurrency is the most requests in flight, up to 10,000. Zero is 8.
	Concurrency int

	// Grace is how long requests in flight may go on after ctx has ended or the loop was left. Choose less
	// than the time between SIGTERM and SIGKILL. Zero is 30 seconds. Below zero they are canceled at once,
	// and their outcome is unknown.
	Grace time.Duration

	// GiveUpAfter is how long nothing may have worked before SubmitAll ends with [ErrSuspended].
	// Zero is 30 minutes. Below zero it never gives up.
	GiveUpAfter time.Duration

	// Progress is called before each result is yielded, and when the service is down and works again. Nil:
	// nobody is told.
	Progress func(BulkProgress)

	// Abandoned gets the results that were not yielded when the loop was left. With nil, the
	// log has a warning with their number and outcomes.
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

	Stats // of the client
}

// Paused reports that the service is down.
func (p BulkProgress) Paused() bool { return !p.PausedUntil.IsZero() }

func (p *BulkProgress) count(o Outcome) {
	p.Done++
	switch o {
	case OutcomeAccepted:
		p.Accepted++
	case OutcomeRejected:
		p.Rejected++
	case OutcomeNotSent:
		p.NotSent++
	default:
		p.Unknown++
	}
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

// MarshalText returns the text. To keep a submission, store its fields.
func (s Submission) MarshalText() ([]byte, error) { return fmt.Append(nil, s), nil }

// LogValue logs the index, the outcome and the attempts.
func (s Submission) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("index", s.Index), slog.String("outcome", s.Outcome.String()), slog.Int("attempts", s.Attempts))
}

// ErrSuspended: the service is down, so the refund was not sent, or not sent once more: [ActionOf] says
// which. Submit returns it at once, with the time to the next probe as RetryAfter, and SubmitAll after
// [BulkOptions.GiveUpAfter]. There it also matches the last failure, such as [ErrServer].
var ErrSuspended = fault.ErrSuspended

const (
	defaultConcurrency = 8
	maxConcurrency     = 10_000
	defaultGrace       = 30 * time.Second
	defaultGiveUpAfter = 30 * time.Minute
	// maxWaiting bounds, with Concurrency, the records that are held.
	maxWaiting = 1024
	// maxRetryAfter is the longest wait that the service can impose on SubmitAll.
	maxRetryAfter = time.Minute
)

// SubmitAll submits any number of refunds of any number of accounts, each as [Client.Submit] does. To
// stop it, cancel ctx and go on ranging. It yields one result for each item that it takes from the
// input, as results arrive: [Submission.Action] says what to do about it. [Items] makes the input for one
// account.
//
// The error beside a result is nil until SubmitAll ends early. It is then the reason, and comes once and
// last, beside a Submission that is empty: look at the error first. It matches no outcome and is not Retryable. The rest of the input
// was not taken: submit that later.
//
// A record is sent again, whatever [WithMaxRetries] says, if it is proven not to be recorded and the reason may
// pass, as after a 429 that a limiter signs, without a connection, or in an outage; at most ten times while others
// are accepted. Meanwhile it delays no other, but those with the same account and RefundID, such as a refund
// and its later status: they are sent one after the other in input order, after any outcome of the previous
// one. While the service is down, SubmitAll waits. It holds at most 1,024 records, and Concurrency more. An
// unusable item, such as one without a Refund, is yielded as not sent, with [ErrInvalidArgument].
//
// # The end
//
// SubmitAll ends early
//
//   - when nothing has worked for [BulkOptions.GiveUpAfter], with [ErrSuspended]
//   - if its first hundred results are the same refusal, or all results say [ActionFixSetup] and the service
//     is down
//   - if the rate limit would delay a record past ctx's deadline
//   - with ctx. Nothing new is taken or sent then, and requests in flight may finish within
//     [BulkOptions.Grace].
//
// What was taken but not sent is yielded as not sent, with the reason. If you break out of the loop, SubmitAll
// waits for the requests in flight in the same way, and [BulkOptions.Abandoned] gets the remaining results. Then
// yield returns false in the input, and the record that it was called with has a result like any other.
//
// Input, loop and the functions of BulkOptions run on one goroutine. A panic of your code reaches the
// loop. Range over the results once.
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
			yield(endedBy(err))
			return
		}
		b := newBulk(ctx, c, o, settings, yield)
		defer b.stop()
		b.run(items)
	}
}
