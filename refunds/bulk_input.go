package refunds

import (
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/transport"
)

// An Item is one refund for [Client.SubmitAll].
type Item struct {
	// AccountID is the {account_id} of the path: see [Client.Submit].
	AccountID string
	// Refund is the record. It is encoded when it is taken, so the input may reuse it for the
	// next item.
	Refund *Refund
	// Options apply to this refund alone and win over those of the call, such as
	// [WithBeforeSend], an idempotency key, or the token source of an account.
	Options []CallOption
	// Ref comes back in [Submission.Ref], such as the queue's message or the table's row:
	// account and RefundID may repeat. It is not sent, printed or logged.
	Ref any
}

// Format prints what [Refund.Format] prints, under any verb, and not the account.
func (i Item) Format(state fmt.State, verb rune) {
	fault.Format(state, verb, i.Refund.summary())
}

// LogValue logs what [Refund.LogValue] logs.
func (i Item) LogValue() slog.Value { return slog.StringValue(i.Refund.summary()) }

// Items makes the input of [Client.SubmitAll] from the refunds of one account. A nil
// sequence stays nil, which SubmitAll refuses.
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

// A record is an item taken from the input. It has its result when it is done.
type record struct {
	encodedRefund
	settings *transport.Settings
	ref      any // Item.Ref
	index    int
	taken    time.Time
	cause    error  // the failure of the previous try
	last     *Error // of the last attempt before the current try; nil: there was none

	failures int // counted while others succeeded
	behind   int // bulkRun.succeeded, before it is sent again

	// State of the current try:
	place  place
	queued bool // it may still wait for the limiter

	done    bool
	receipt *Receipt
	err     error
	lost    bool // a function of the caller panicked, or ended the goroutine
}

// take makes a record of an item; err says why it cannot be sent.
func (b *bulkRun) take(i Item) *record {
	r := &record{settings: b.settings, ref: i.Ref, taken: time.Now()}
	r.encodedRefund, r.err = encode(i.AccountID, i.Refund)
	if r.err == nil && len(i.Options) > 0 {
		r.settings, r.err = b.settings.With(changes(i.Options))
	}
	return r
}
