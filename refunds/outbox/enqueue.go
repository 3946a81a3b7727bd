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
	"time"

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
	Row int64 // its number: Entry.Row
	New bool  // false: a record with the same account and content was there before
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

func (o *Outbox) enqueue(ctx context.Context, tx session, item Item) (e Enqueued, err error) {
	if err := acceptable(item.AccountID, item.Refund); err != nil {
		return e, fmt.Errorf("outbox: a refund cannot be enqueued: %w", err)
	}
	defer func() {
		if err != nil && !errors.Is(err, ErrAmountChanged) && !errors.Is(err, ErrTables) {
			err = fmt.Errorf("outbox: enqueue: %w", err)
		}
	}()
	r := item.Refund
	content, err := json.Marshal(r)
	if err != nil {
		return e, err
	}
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	// In SQLite, a transaction that began with a read could not wait for another writer. So
	// the first statement is the one that writes, and nothing is locked: there is one writer.
	if o.schema != "" {
		if err := lock(ctx, tx, item.AccountID+"/"+r.RefundID); err != nil {
			return e, err
		}
	}
	added, err := one[int64](ctx, tx, `
		INSERT INTO outbox_refund (account, refund_id, digest, content, amount, currency, enqueued_at)
		SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), CAST($6 AS TEXT), CAST($7 AS TEXT)
		WHERE NOT EXISTS (SELECT 1 FROM outbox_refund WHERE account = $1 AND refund_id = $2 AND digest = $3)
		AND (CAST($8 AS INTEGER) = 1 OR NOT EXISTS (
			SELECT 1 FROM outbox_refund AS last
			WHERE last.id = (SELECT MAX(id) FROM outbox_refund WHERE account = $1 AND refund_id = $2 AND state <> 'rejected')
			AND (last.amount IS DISTINCT FROM CAST($5 AS BIGINT) OR last.currency <> $6)))
		ON CONFLICT (account, refund_id, digest) DO NOTHING RETURNING id`,
		item.AccountID, r.RefundID, digest, string(content), r.Amount, r.Currency, timeText(time.Now()), map[bool]int{true: 1}[item.AllowChange])
	if noTable(err) {
		return e, missing(err)
	}
	if err != nil {
		return e, err
	}
	e.New = added != 0
	e.Row, err = one[int64](ctx, tx, `SELECT id FROM outbox_refund WHERE account = $1 AND refund_id = $2 AND digest = $3`, item.AccountID, r.RefundID, digest)
	switch {
	case err != nil:
		return e, err
	case e.Row == 0:
		return e, ErrAmountChanged
	case !e.New:
		return e, nil
	}
	return e, o.giveJobs(ctx, tx, `id = $1`, e.Row)
}

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
