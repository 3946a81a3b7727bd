package refunds

import (
	"cmp"
	"fmt"
	"iter"
	"log/slog"
	"slices"

	"github.com/carddata/carddata-go/internal/transport"
)

// An Item is one refund for [Client.SubmitAll].
type Item struct {
	// AccountID is the {account_id} of the path: see [Client.Submit].
	AccountID string
	// Refund is the record. It is encoded when it is taken from the input, so the input
	// may reuse it for the next item.
	Refund *Refund
	// Options apply to this refund alone and win over those of the call, such as
	// WithHeader("Idempotency-Key", …) or the token source of an account. Nil is none.
	Options []Option
}

// Format prints what [Refund.Format] prints, whatever the verb, and not the account.
func (i Item) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, i.Refund.summary())
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

// A record is an item that was taken from the input. It has its result once it is
// done.
type record struct {
	encodedRefund
	options []Option
	own     []Option // the item's among them
	index   int
	sent    int // as the nth record

	done     bool
	receipt  *Receipt
	err      error
	panicked any
}

// take makes an item a record; err says why it cannot be sent.
func (b *bulkRun) take(i Item) *record {
	r := &record{options: b.opts}
	r.encodedRefund, r.err = b.client.encode(i.AccountID, i.Refund)
	if r.err == nil && len(i.Options) > 0 {
		r.options = slices.Concat(b.opts, i.Options) // the input may reuse its slice
		r.own = r.options[len(b.opts):]
		r.err = b.client.core.CheckOptions(r.options)
	}
	return r
}

// read runs the input on a goroutine of its own. A record that it could not hand over
// was not taken: the input's yield then returns false.
func (b *bulkRun) read(items iter.Seq[Item]) {
	b.records, b.inputEnd = make(chan *record), make(chan any, 1)
	go func() {
		var panicked any = errPanicked
		defer func() { b.inputEnd <- cmp.Or(recover(), panicked) }()
		for i := range items {
			select {
			case b.records <- b.take(i):
				continue
			case <-b.ctx.Done():
			}
			break
		}
		panicked = nil
	}()
}
