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

	// Grace is how long requests in flight may go on after ctx has ended or the loop was left: less than
	// the time between SIGTERM and SIGKILL. Zero is 30 seconds. Below zero they are canceled at once, and
	// their outcome is unknown.
	Grace time.Duration

	// GiveUpAfter is how long nothing may have worked before SubmitAll ends with [ErrSuspended]. A refused
	// record works, as by a 422, but a refused setup does not: see [ActionFixSetup]. Zero is 30 minutes.
	// Below zero it never gives up.
	GiveUpAfter time.Duration

	// Progress, if not nil, is called before each result, and when the service is down and works again.
	Progress func(BulkProgress)

	// Abandoned, if not nil, gets the results that were not yielded when the loop was left.
	Abandoned func(Submission)
}

// BulkProgress counts what a bulk submission has done.
type BulkProgress struct {
	Taken    int // records taken from the input
	Done     int // results: the sum of the next four
	Accepted int
	Rejected int
	NotSent  int
	Unknown  int
	Requests int // requests handed to the network, retries included
	Retries  int // requests that repeat another one

	Stats // of the client
}

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
	Index     int // position in the input, from 0
	Ref       any // Item.Ref
	AccountID string
	RefundID  string
	Outcome   Outcome  // OutcomeAccepted if Err is nil
	Receipt   *Receipt // of an accepted refund
	Err       error    // an *Error, or nil for an accepted refund
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

// ErrSuspended: the service is down, so the refund was not sent, or not once more: [ActionOf] says which.
// Submit returns it at once, with the time to the next probe as RetryAfter. SubmitAll ends with it after
// [BulkOptions.GiveUpAfter]; it then matches the last failure, too.
var ErrSuspended = fault.ErrSuspended

const (
	defaultConcurrency = 8
	maxConcurrency     = 10_000
	defaultGrace       = 30 * time.Second
	defaultGiveUpAfter = 30 * time.Minute
	// maxWaiting bounds, with Concurrency, the records that are held.
	maxWaiting = 1024
)

// SubmitAll submits any number of refunds of any number of accounts, each as [Client.Submit] does. It yields
// one result for each item that it takes, as results arrive: [Submission.Action] says what to do. [Items]
// makes the input for one account.
//
// If SubmitAll ends early, the last thing that it yields is an error, beside an empty Submission: look at the
// error first. It is about no refund: it matches no outcome and is not Retryable. Submit the rest of the
// input later.
//
// A record that was not recorded is sent again, whatever [WithMaxRetries] says, if the reason may pass:
// after a signed 429, without a connection, or in an outage; at most ten times while others are accepted.
// Meanwhile it delays only those with the same account and RefundID, such as a refund and its later
// status. These are sent one after the other in input order, after any outcome. At most 1,024 records, and
// Concurrency more, are held. An unusable item is not sent, with [ErrInvalidArgument].
//
// # The end
//
// SubmitAll ends early
//
//   - when nothing has worked for [BulkOptions.GiveUpAfter], with [ErrSuspended]
//   - if nothing was accepted, and the service is down because of the setup, such as a refused credential of
//     the client. A wrong path of the base URL does not end it: each record is rejected
//   - if the rate limit would delay a record past ctx's deadline
//   - with ctx. Nothing new is taken or sent then, and requests in flight may finish within
//     [BulkOptions.Grace].
//
// Every record that was taken has a result: what was not sent is not sent, with the reason, and what was
// refused and would have been sent again is rejected. To stop, cancel ctx and go on ranging. If you break out
// of the loop, SubmitAll waits for the requests in flight in the same way, and [BulkOptions.Abandoned] gets
// the remaining results.
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
