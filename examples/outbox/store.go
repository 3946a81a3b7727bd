package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/carddata/carddata-go/refunds"
)

// submitArgs are the arguments of a job: the refund's row, and none of its data,
// which River would show to whoever looks at the queue.
type submitArgs struct {
	Row int64 `json:"row"`
}

// Kind names the jobs.
func (submitArgs) Kind() string { return "submit_refund" }

// InsertOpts keeps River from discarding a job: attempts are counted with the
// refund.
func (submitArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 10_000} }

func jobsFor(after time.Duration, rows ...int64) []river.InsertManyParams {
	options := new(river.InsertOpts)
	if after > 0 {
		options.ScheduledAt = time.Now().Add(after)
	}
	var jobs []river.InsertManyParams
	for _, id := range rows {
		jobs = append(jobs, river.InsertManyParams{Args: submitArgs{id}, InsertOpts: options})
	}
	return jobs
}

// A placement says what became of a record that was to be enqueued.
type placement struct {
	row     int64 // 0: not enqueued
	earlier int64 // the latest row of the same refund_id before it; 0: none
	changed bool  // its amount or currency differs from what was not rejected
}

// store enqueues records in the caller's transaction: call it where the refund is
// booked, with the transaction that books it. A record that is there already, with
// the same content, is not enqueued again. One that has the refund_id of another
// is an update of it, and sent after it.
//
// An update with another amount or currency is not enqueued unless change allows
// it: it is more likely a mistake than a refund that changed. In PostgreSQL that
// needs the isolation level READ COMMITTED, which is the default: others that
// enqueue the same refund_id wait for the transaction to end.
func store(ctx context.Context, tx transaction, account string, records []*refunds.Refund, change bool) ([]placement, error) {
	names := make([]string, len(records))
	for i, record := range records {
		if err := acceptable(account, record); err != nil {
			return nil, fmt.Errorf("outbox: a refund cannot be enqueued: %w", err)
		}
		names[i] = account + "\x00" + record.RefundID
	}
	if err := tx.lock(ctx, names); err != nil {
		return nil, err
	}
	placements := make([]placement, len(records))
	var added []int64
	for i, record := range records {
		p, err := place(ctx, tx, account, record, change)
		if err != nil {
			return nil, err
		}
		if placements[i] = p; p.row != 0 {
			added = append(added, p.row)
		}
	}
	if len(added) == 0 {
		return placements, nil
	}
	return placements, tx.insertJobs(ctx, jobsFor(0, added...))
}

func place(ctx context.Context, tx transaction, account string, record *refunds.Refund, change bool) (p placement, err error) {
	content, err := json.Marshal(record)
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(content)
	digest, same := hex.EncodeToString(sum[:]), false
	err = tx.query(ctx, func(scan scanner) error {
		var (
			id       int64
			amount   *int64
			currency string
			found    string
			state    string
		)
		if err := scan(&id, &amount, &currency, &found, &state); err != nil {
			return err
		}
		p.earlier = id
		same = same || found == digest
		if state != rejected { // which a correction may differ from
			p.changed = currency != record.Currency || (amount == nil) != (record.Amount == nil) || amount != nil && *amount != *record.Amount
		}
		return nil
	}, `SELECT id, amount, currency, digest, state FROM outbox_refund WHERE account = $1 AND refund_id = $2 ORDER BY id`, account, record.RefundID)
	switch {
	case err != nil:
		return p, err
	case same:
		return placement{}, nil
	case p.changed && !change:
		return p, nil
	}
	now := timeText(time.Now())
	// Another transaction may enqueue the same record now: the first one does.
	err = tx.query(ctx, func(scan scanner) error { return scan(&p.row) }, `
		INSERT INTO outbox_refund (account, refund_id, digest, content, amount, currency, enqueued_at, changed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
		ON CONFLICT (account, refund_id, digest) DO NOTHING RETURNING id`,
		account, record.RefundID, digest, string(content), record.Amount, record.Currency, now)
	return p, err
}
