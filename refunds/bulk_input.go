package refunds

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/transport"
)

// An Item is one refund for [Client.SubmitAll].
type Item struct {
	AccountID string
	// Refund is encoded when it is taken: the input may reuse it for the next item.
	Refund *Refund
	// Options win over those of the call, such as an idempotency key or the token source of an account.
	Options []CallOption
	// Ref comes back in [Submission.Ref], such as a queue's message or a table's row. It is not sent,
	// printed or logged.
	Ref any
}

// Format prints what [Refund.Format] prints, under any verb, and not the account.
func (i Item) Format(state fmt.State, verb rune) {
	fault.Format(state, verb, i.Refund.summary())
}

// LogValue logs what [Refund.LogValue] logs.
func (i Item) LogValue() slog.Value { return slog.StringValue(i.Refund.summary()) }

// Items makes the input of [Client.SubmitAll] from the refunds of one account. Nil stays nil, which is
// refused.
func Items(accountID string, refunds iter.Seq[*Refund]) iter.Seq[Item] {
	if refunds == nil {
		return nil
	}
	return func(yield func(Item) bool) {
		for r := range refunds {
			if !yield(Item{AccountID: accountID, Refund: r}) {
				return
			}
		}
	}
}

// A record is an item taken from the input. It has its result when it is complete.
type record struct {
	encodedRefund
	settings *transport.Settings
	own      bool // it has options of its own
	ref      any  // Item.Ref
	index    int
	last     *Error // of the last attempt before the current try; nil: there was none
	tries    int
	rounds   int   // refusals
	others   int64 // accepted when it was refused first
	held     bool  // it waited for its next try when the submission ended
	receipt  *Receipt
	err      error
}

// take makes a record of an item; err says why it cannot be sent.
func (b *bulkRun) take(i Item) *record {
	r := &record{settings: b.settings, ref: i.Ref}
	r.encodedRefund, r.err = encode(i.AccountID, i.Refund)
	if r.err == nil && len(i.Options) > 0 {
		r.own = true
		r.settings, r.err = b.settings.With(changes(i.Options))
	}
	return r
}

func (r *record) submission() Submission {
	s := Submission{Index: r.index, Ref: r.ref, AccountID: r.accountID, RefundID: r.refundID, Outcome: OutcomeAccepted, Receipt: r.receipt, Err: r.err, Attempts: r.before + r.attempts}
	if failed, ok := errors.AsType[*Error](r.err); ok {
		s.Outcome = failed.Outcome
	}
	return s
}

// triesAgain prepares the record for its next try.
func (r *record) triesAgain() {
	if r.attempts > 0 {
		r.last, _ = errors.AsType[*Error](r.err)
	}
	r.before, r.attempts, r.again, r.tries = r.before+r.attempts, 0, true, r.tries+1
}

// conclude gives the record its result. If no further attempt was made, the outcome
// is that of the last one.
func (r *record) conclude(err error) {
	r.err, r.body = err, nil
	end, ok := errors.AsType[*Error](err)
	if !ok || r.last == nil || r.attempts > 0 {
		return
	}
	failed := *r.last
	failed.RetryAfter, failed.Attempts = end.RetryAfter, end.Attempts
	failed.Err = end.failure().After(r.last.failure())
	r.err = &failed
}
