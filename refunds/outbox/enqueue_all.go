package outbox

import (
	"context"
	"fmt"
	"iter"
)

// batchSize is how many items EnqueueAll books in a transaction.
const batchSize = 10_000

// EnqueueAll books the refunds of a file or a table, up to 10,000 in a transaction of its own, in the
// order of the input. What [Outbox.Enqueue] promises of each holds here, too, also for two items of
// the same refund_id: the same record is taken once, and another amount is refused.
//
// It yields each item's place when its transaction is committed. An item that is not booked has Err,
// which matches [ErrAmountChanged] or [refunds.ErrInvalidArgument], and the others are booked. An
// error beside it is the end, and comes once, last: of the database or of ctx. What was yielded
// before is booked, and perhaps one batch more.
//
// If it ends early, or the process is killed, give it the same input again: nothing is booked twice. What
// was refused because of its amount is booked then if the earlier record was rejected meanwhile.
//
// A batch is held in memory, and in SQLite other writers wait for it.
func (o *Outbox) EnqueueAll(ctx context.Context, items iter.Seq[Item]) iter.Seq2[Enqueued, error] {
	return func(yield func(Enqueued, error) bool) {
		b := newBatch(o, 0)
		flush := func() bool {
			if err := b.book(ctx); err != nil {
				yield(Enqueued{}, failed("enqueue all", err))
				return false
			}
			for _, e := range b.places {
				if !yield(e, nil) {
					return false
				}
			}
			b = newBatch(o, b.first+len(b.places))
			return true
		}
		if err := o.check(ctx); err != nil {
			yield(Enqueued{}, err)
			return
		}
		for item := range items {
			if b.add(item); len(b.places) == batchSize && !flush() {
				return
			}
		}
		flush()
	}
}

// A batch is booked in one transaction.
type batch struct {
	*Outbox
	first    int // index of the first item
	places   []Enqueued
	bookings []booking         // of the items that can be sent
	turns    [][]*Enqueued     // the places of bookings, by their turns
	seen     map[[2]string]int // how many bookings a refund_id has
}

func newBatch(o *Outbox, first int) *batch {
	return &batch{Outbox: o, first: first, places: make([]Enqueued, 0, batchSize), seen: make(map[[2]string]int)}
}

func (b *batch) add(item Item) {
	booking, err := newBooking(item)
	b.places = append(b.places, Enqueued{Index: b.first + len(b.places), Err: err})
	if err != nil {
		return
	}
	key := [2]string{booking.account, booking.refundID}
	booking.turn = b.seen[key]
	b.seen[key]++
	if booking.turn == len(b.turns) {
		b.turns = append(b.turns, nil)
	}
	b.turns[booking.turn] = append(b.turns[booking.turn], &b.places[len(b.places)-1])
	b.bookings = append(b.bookings, booking)
}

// incoming is the temporary table of a batch.
const incoming = "outbox_incoming"

func (b *batch) book(ctx context.Context) error {
	if len(b.bookings) == 0 {
		return nil
	}
	return b.transact(ctx, func(tx session) error {
		if err := b.fill(ctx, tx, b.bookings); err != nil {
			return err
		}
		// In a turn, each refund_id has one record at most.
		for turn, places := range b.turns {
			if err := b.take(ctx, tx, turn, places); err != nil {
				return err
			}
		}
		_, err := tx.exec(ctx, `DROP TABLE `+incoming)
		return err
	})
}

// take books the records of a turn.
func (b *batch) take(ctx context.Context, tx session, turn int, places []*Enqueued) error {
	table := fmt.Sprint(`(SELECT * FROM `, incoming, ` WHERE turn = `, turn, `)`)
	added := make(map[int64]bool)
	for {
		ids, err := insert(ctx, tx, table)
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			if err := b.giveJobs(ctx, tx, `id BETWEEN $1 AND $2 AND EXISTS (SELECT 1 FROM `+incoming+` AS booking
				WHERE booking.account = this.account AND booking.refund_id = this.refund_id AND booking.digest = this.digest)`,
				ids[0], ids[len(ids)-1]); err != nil {
				return err
			}
		}
		for _, id := range ids {
			added[id] = true
		}
		found, err := lookUp(ctx, tx, table)
		if err != nil {
			return err
		}
		left := false
		for i, e := range places {
			switch s := found[i]; {
			case s.Stored != 0:
				e.Row, e.New = s.Stored, added[s.Stored]
			case s.Changes != 0:
				e.Row, e.Err = s.Changes, amountChanged(s.Changes)
			default: // another transaction stored a record of the refund_id meanwhile
				left = true
			}
		}
		if !left {
			return nil
		}
	}
}
