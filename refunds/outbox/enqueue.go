package outbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/carddata/carddata-go/refunds"
)

// An Item is a refund record to be submitted.
type Item struct {
	AccountID string          // the account that the record is submitted for
	Refund    *refunds.Refund // the record, which needs a RefundID
	// AllowChange takes a record with the refund_id of an earlier one and another amount or
	// currency. Without it such a record is refused with ErrAmountChanged, unless the earlier
	// one was rejected: it is more likely a mistake than a refund that changed.
	AllowChange bool
}

// Enqueued says where a record stands in the outbox.
type Enqueued struct {
	Row int64 // its number: Entry.Row; after ErrAmountChanged, that of the earlier record
	New bool  // false: a record with the same account and content was there before

	// Of EnqueueAll alone:
	Index int   // the item's place in the input, from 0
	Err   error // why the item is not booked
}

// ErrAmountChanged is the error of an [Item] with the refund_id of an earlier record and
// another amount or currency. Nothing was enqueued, and the transaction can go on.
var ErrAmountChanged = errors.New("outbox: an earlier record has this refund_id with another amount or currency")

// Enqueue stores a refund in a transaction of database/sql on the outbox's database: it is
// submitted if the transaction commits, and was never there if it does not. Any driver and
// any handle on the database will do.
//
// The same record is taken once: enqueue it as often as you like. A record with the same
// refund_id and any other difference is an update, and is sent after the earlier one. So
// build the record from what you have stored. With time.Now() in Created, each repetition
// is an update, and is sent again.
//
// The error of a record or account that cannot be sent matches
// [refunds.ErrInvalidArgument]. See also [ErrAmountChanged] and [ErrTables].
//
// In PostgreSQL, a transaction that enqueues a refund_id waits for others that enqueue the
// same one. If yours enqueue several, do it in the same order everywhere.
func (o *Outbox) Enqueue(ctx context.Context, tx *sql.Tx, item Item) (Enqueued, error) {
	return o.enqueue(ctx, sqlSession{tx, o.schema == ""}, item)
}

// EnqueuePgx is [Outbox.Enqueue] in a transaction of pgx.
func (o *Outbox) EnqueuePgx(ctx context.Context, tx pgx.Tx, item Item) (Enqueued, error) {
	return o.enqueue(ctx, pgxSession{tx}, item)
}

func (o *Outbox) enqueue(ctx context.Context, tx session, item Item) (Enqueued, error) {
	b, err := newBooking(item)
	if err != nil {
		return Enqueued{}, err
	}
	e, err := o.book(ctx, tx, b)
	return e, failed("enqueue", err)
}

// A booking is an item as its row has it.
type booking struct {
	account, refundID, digest, content string
	amount                             *int64
	currency                           string
	changes                            int // 1: the amount may be another one than before
	turn                               int // how many of its batch have the same refund_id before it
}

func newBooking(item Item) (b booking, err error) {
	if err := acceptable(item.AccountID, item.Refund); err != nil {
		return b, fmt.Errorf("outbox: the refund cannot be sent: %w", err)
	}
	content, err := json.Marshal(item.Refund)
	if err != nil {
		return b, fmt.Errorf("outbox: the refund cannot be sent: %w", err)
	}
	sum := sha256.Sum256(content)
	b = booking{item.AccountID, item.Refund.RefundID, hex.EncodeToString(sum[:]), string(content), item.Refund.Amount, item.Refund.Currency, 0, 0}
	if item.AllowChange {
		b.changes = 1
	}
	return b, nil
}

func (b *booking) args() []any {
	return []any{b.account, b.refundID, b.digest, b.content, b.amount, b.currency, b.changes}
}

// thisBooking is a table with the row of args.
const thisBooking = `(SELECT 0 AS n, CAST($1 AS TEXT) AS account, CAST($2 AS TEXT) AS refund_id, CAST($3 AS TEXT) AS digest,
	CAST($4 AS TEXT) AS content, CAST($5 AS BIGINT) AS amount, CAST($6 AS TEXT) AS currency, CAST($7 AS INTEGER) AS changes)`

// changed chooses the record that a booking changes the amount or the currency of, unless it may.
const changed = `SELECT id FROM outbox_refund AS last WHERE booking.changes = 0
	AND last.id = (SELECT MAX(id) FROM outbox_refund AS r WHERE r.account = booking.account AND r.refund_id = booking.refund_id AND r.state <> 'rejected')
	AND (last.amount IS DISTINCT FROM booking.amount OR last.currency <> booking.currency)`

// insert stores what may be stored of a table of bookings with a refund_id each, and returns the ids.
// It waits for other transactions that store a record of such a refund_id, and leaves that booking
// out then, because they have taken the number.
func insert(ctx context.Context, tx session, table string, args ...any) ([]int64, error) {
	return all[int64](ctx, tx, `
		INSERT INTO outbox_refund (account, refund_id, number, digest, content, amount, currency, enqueued_at)
		SELECT account, refund_id, 1 + (SELECT COALESCE(MAX(number), 0) FROM outbox_refund AS r WHERE r.account = booking.account AND r.refund_id = booking.refund_id),
			digest, content, amount, currency, `+tx.clock(0)+`
		FROM `+table+` AS booking
		WHERE NOT EXISTS (SELECT 1 FROM outbox_refund AS r WHERE r.account = booking.account AND r.refund_id = booking.refund_id AND r.digest = booking.digest)
		AND NOT EXISTS (`+changed+`)
		ORDER BY n ON CONFLICT DO NOTHING RETURNING id`, args...)
}

// A standing says where a booking stands.
type standing struct {
	Stored  int64 // the row with its content
	Changes int64 // the row that keeps it out, because the amount or the currency would change
}

// lookUp returns where the rows of a table of bookings with a refund_id each stand, in their order.
func lookUp(ctx context.Context, tx session, table string, args ...any) ([]standing, error) {
	return all[standing](ctx, tx, `
		SELECT COALESCE((SELECT id FROM outbox_refund AS r WHERE r.account = booking.account AND r.refund_id = booking.refund_id AND r.digest = booking.digest), 0) AS stored,
			COALESCE((`+changed+`), 0) AS changes
		FROM `+table+` AS booking ORDER BY n`, args...)
}

// book stores a booking with its job, unless it is there, or would change the amount.
//
// In SQLite, a transaction that began with a read could not wait for another writer. So the
// first statement is the one that writes.
func (o *Outbox) book(ctx context.Context, tx session, b booking) (Enqueued, error) {
	for {
		added, err := insert(ctx, tx, thisBooking, b.args()...)
		if noTable(err) {
			return Enqueued{}, missing(err)
		}
		if err != nil {
			return Enqueued{}, err
		}
		if len(added) == 1 {
			return Enqueued{Row: added[0], New: true}, o.giveJobs(ctx, tx, `id = $1`, added[0])
		}
		found, err := lookUp(ctx, tx, thisBooking, b.args()...)
		switch {
		case err != nil:
			return Enqueued{}, err
		case found[0].Stored != 0:
			return Enqueued{Row: found[0].Stored}, nil
		case found[0].Changes != 0:
			return Enqueued{Row: found[0].Changes}, amountChanged(found[0].Changes)
		} // another transaction stored a record of the refund_id meanwhile
	}
}

func amountChanged(row int64) error { return fmt.Errorf("%w: row %d", ErrAmountChanged, row) }

// giveJobs gives a job to each refund that a condition chooses. A job too many does no
// harm: the refund's state decides.
//
// It writes River's table as River's clients in other languages do, because River's Go
// client takes one type of transaction only. Workers look for new jobs often enough.
func (o *Outbox) giveJobs(ctx context.Context, tx session, where string, args ...any) error {
	_, err := tx.exec(ctx, fmt.Sprintf(`INSERT INTO %s (args, kind, max_attempts, queue)
		SELECT %s('row', id), '%s', %d, '%s' FROM outbox_refund AS this WHERE %s ORDER BY id`,
		o.river("job"), o.jobArgs, jobKind, jobAttempts, queueName, where), args...)
	return err
}

// gatekeeper is a client that sends nothing: it knows what the library refuses.
var gatekeeper = sync.OnceValues(func() (*refunds.Client, error) { return refunds.NewClient("https://localhost") })

// acceptable tells whether the library will send a record. Its errors quote nothing of it.
func acceptable(account string, r *refunds.Refund) error {
	client, err := gatekeeper()
	if err != nil {
		return err
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err = client.Submit(ended, account, r); errors.Is(err, refunds.ErrInvalidArgument) {
		return err
	}
	return nil
}
