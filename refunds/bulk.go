package refunds

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// BulkOptions configure [Client.SubmitAll]. The zero value is good.
type BulkOptions struct {
	// Concurrency is how many refunds may be in flight, 10,000 at most. Zero is 8.
	// With 1, each result is yielded before the next record is taken.
	Concurrency int

	// Ordered yields the results in the order of the input, and not as they come.
	// One slow refund then holds back the results of up to a thousand behind it.
	Ordered bool

	// Grace is how long requests on the wire may go on after the context has ended
	// or the loop was left, so that stopping makes no outcome unknown that a little
	// patience would have settled. Zero is 30 seconds; below zero they are canceled
	// at once.
	Grace time.Duration

	// GiveUpAfter is how long submission is held back while the service fails, as
	// described at [Client.SubmitAll], before the rest is not sent: see
	// [ErrSuspended]. Zero is 30 minutes; below zero it is as long as ctx allows.
	GiveUpAfter time.Duration

	// Progress is called before each result is yielded, and when submission pauses
	// and goes on, by the goroutine that runs the loop.
	Progress func(BulkProgress)

	// Abandoned is called when the loop was left, for each record taken from the
	// input whose result the loop did not get, by the goroutine that ran it. Without
	// it nobody hears what became of the refunds that were in flight then.
	Abandoned func(Submission, error)
}

// BulkProgress counts what a bulk submission has done so far.
type BulkProgress struct {
	Taken    int // records taken from the input
	Done     int // results, which are of the four outcomes below
	Accepted int
	Rejected int
	NotSent  int
	Unknown  int
	Requests int // handed to the network, repetitions included
	Retries  int // of them
	Paused   bool
}

// A Submission is what became of one record.
type Submission struct {
	// Index is the position of the record in the input, from 0; -1 if the error that
	// comes with it ended the submission.
	Index int
	// RefundID is the record's.
	RefundID string
	// Outcome is that of the error, or [OutcomeAccepted] without one.
	Outcome Outcome
	// Receipt is nil unless the refund was accepted.
	Receipt *Receipt
	// Attempts counts the requests handed to the network.
	Attempts int
}

// Format prints the index and the outcome, whatever the verb, and no id.
func (s Submission) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, fmt.Sprintf("submission %d: %v", s.Index, s.Outcome))
}

// LogValue logs the index, the outcome and the attempts.
func (s Submission) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("index", s.Index), slog.String("outcome", s.Outcome.String()), slog.Int("attempts", s.Attempts))
}

// ErrSuspended: the service kept failing for [BulkOptions.GiveUpAfter], and this
// record was not sent. The error matches what the last probe met, too, such as
// [ErrServer] or [ErrUnauthorized].
var ErrSuspended = errors.New("submission suspended")

const (
	defaultConcurrency = 8
	maxConcurrency     = 10_000
	defaultGrace       = 30 * time.Second
	defaultGiveUpAfter = 30 * time.Minute
	// maxWaiting bounds, with Concurrency, the records that are held.
	maxWaiting = 1024
)

// SubmitAll submits any number of refunds (interface, endpoint 2), and yields one
// result for each record that it takes from the input, in the order in which they
// settle. The error is the [*OutcomeError] that [Client.Submit] would return, or
// nil with a Receipt. What Submit repeats, SubmitAll repeats, and no more: an
// unknown outcome is final, unless the client was made with [WithResubmit].
//
// [BulkOptions.Concurrency] refunds are in flight within the client's rate limit;
// a record may queue for the limiter as long as that takes, and each attempt then
// lasts up to [WithAttemptTimeout]. The input is asked for its next record only
// when that can be sent and fewer than Concurrency results wait to be taken. A
// record is encoded as it is taken, so that the input may reuse it. At most 1,024
// records and Concurrency more are held, each as its JSON or its Receipt. An
// unusable record, such as nil, is yielded as not sent, with [ErrInvalidArgument].
//
// Records with one RefundID are sent in their order, each after the one before it
// has settled, whatever became of that one: they are separate records of yours,
// such as a refund and its later status. An earlier one whose outcome is unknown
// may yet be recorded after the later one; before you submit it again, see whether
// the later one has replaced it.
//
// # When the service fails
//
// Five failures in a row pause submission, so that an outage makes few outcomes
// unknown. A failure is what the next record would meet, too: every unknown outcome
// and record that was not sent, and of the rejections 401, 403, 404, 407, 410, 429,
// redirects, 501 and 505. Other rejections, such as 400 and 422, are about their
// record. In a pause one record is sent to see how things are, a refund like any
// other that was not sent before: first after a second, then after waits that
// double up to two minutes, or half of it by chance. When it is accepted, or
// rejected for what it holds, all goes on. An outage so costs 4 + Concurrency
// records, and one for each such probe. After [BulkOptions.GiveUpAfter] the rest of
// the input is taken and yielded as not sent, with [ErrSuspended].
//
// A record that can not be sent before the deadline of ctx, because of the rate
// limit or a pause that the service asked for, is no failure: it ends the
// submission as the deadline does.
//
// # Stopping
//
// To stop, end ctx, and go on taking results. Nothing new is sent; what was taken
// and not sent is yielded as not sent with the context's error; and requests on
// the wire may finish, for [BulkOptions.Grace]. The last result has Index -1 and
// the context's error: the records after those that were yielded have not been
// taken, and not sent. An unusable argument ends it so, too, at once.
//
// Leaving the loop does the same, waits as long, and hands what it would have
// yielded to [BulkOptions.Abandoned]. No goroutine is left.
//
// Input, loop and the functions of the options run on one goroutine, so that they
// may share what they like. While the input makes SubmitAll wait for a record, no
// result is yielded: an input that may wait long should end with ctx, and then end.
// What a token source, a limiter or an HTTP transport panics with reaches the loop's
// goroutine. The results can be ranged over once, because ranging over them submits.
func (c *Client) SubmitAll(ctx context.Context, accountID string, rs iter.Seq[*Refund], o BulkOptions) iter.Seq2[Submission, error] {
	var ranged atomic.Bool
	return func(yield func(Submission, error) bool) {
		path, err := c.path(accountID)
		switch {
		case err != nil:
		case ctx == nil:
			err = transport.Invalid("the context is nil")
		case rs == nil:
			err = transport.Invalid("the input is nil")
		case o.Concurrency < 0 || o.Concurrency > maxConcurrency:
			err = transport.Invalid("the concurrency is %d, 0 to %d allowed", o.Concurrency, maxConcurrency)
		case ranged.Swap(true):
			err = transport.Invalid("the results were ranged over before")
		}
		if err != nil {
			yield(ended(err))
			return
		}
		b := newBulk(ctx, c, path, o, yield)
		defer b.stop()
		if !b.advance(false) {
			return
		}
		for r := range rs {
			if !b.add(r) {
				return
			}
		}
		b.advance(true)
	}
}
