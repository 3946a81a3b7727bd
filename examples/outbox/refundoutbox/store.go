// Package refundoutbox takes refunds from a database to a settled outcome, through
// crashes of its worker. Copy it: it imports nothing of this module but refunds.
//
//   - state.go is the state machine, store.go what a transaction that books a
//     refund calls, worker.go what sends them.
//   - outcome.go says what an error means, and when to stop for a while; recover.go
//     deals with what dead workers leave behind, and asks where the service can be
//     asked.
//   - list.go tells of refunds and takes decisions, report.go compares them with the
//     service's report.
//   - database.go is what both databases do, sqlite.go and postgres.go the rest: leave
//     out the one that you do not have. The build tag nosqlite leaves SQLite out.
package refundoutbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/carddata/carddata-go/refunds"
)

const (
	// Queue is the name of River's queue: no other program works it.
	Queue = "outbox_refunds"
	// Schema is where PostgreSQL has River's tables of this program. Programs that
	// share tables share a leader, too: the one that River elects discards long-running
	// jobs of all of them, if it does not know their kind.
	Schema = "outbox"
)

// submitArgs are the arguments of a job: the refund's row, and none of its data,
// which River would show to whoever looks at the queue.
type submitArgs struct {
	Row int64 `json:"row"`
}

const kind = "outbox_submit_refund"

// Kind names the jobs.
func (submitArgs) Kind() string { return kind }

// InsertOpts keeps River from discarding a job: attempts are counted with the
// refund.
func (submitArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Queue, MaxAttempts: 10_000}
}

// insertJobs gives jobs to refunds. A job too many does no harm.
func insertJobs(ctx context.Context, tx Tx, rows []int64) error {
	if len(rows) == 0 {
		return nil
	}
	var jobs []river.InsertManyParams
	for _, row := range rows {
		jobs = append(jobs, river.InsertManyParams{Args: submitArgs{row}})
	}
	return tx.insertJobs(ctx, jobs)
}

// A Placement says what became of a record that was to be enqueued.
type Placement struct {
	Row     int64 // 0: not enqueued
	Earlier int64 // the latest row of the same refund_id before it; 0: none
	Changed bool  // its amount or currency differs from what was not rejected
}

// Enqueue enqueues records in the caller's transaction: call it where the refund is
// booked, with the transaction that books it. A record that is there already, with
// the same content, is not enqueued again. One that has the refund_id of another is
// an update of it, and sent after it.
//
// An update with another amount or currency is not enqueued unless change allows
// it: it is more likely a mistake than a refund that changed. In PostgreSQL that
// needs the isolation level READ COMMITTED, which is the default: others that
// enqueue the same refund_id wait for the transaction to end.
func Enqueue(ctx context.Context, tx Tx, account string, records []*refunds.Refund, change bool) ([]Placement, error) {
	names := make([]string, len(records))
	for i, record := range records {
		if err := Acceptable(account, record); err != nil {
			return nil, fmt.Errorf("outbox: a refund cannot be enqueued: %w", err)
		}
		names[i] = account + "/" + record.RefundID
	}
	if tx.lock != nil {
		if err := tx.lock(ctx, names); err != nil {
			return nil, err
		}
	}
	placements := make([]Placement, len(records))
	var added []int64
	for i, record := range records {
		p, err := place(ctx, tx, account, record, change)
		if err != nil {
			return nil, err
		}
		if placements[i] = p; p.Row != 0 {
			added = append(added, p.Row)
		}
	}
	return placements, insertJobs(ctx, tx, added)
}

func place(ctx context.Context, tx Tx, account string, record *refunds.Refund, change bool) (p Placement, err error) {
	content, err := json.Marshal(record)
	if err != nil {
		return p, err
	}
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	earlier, err := list(ctx, tx, `account = $1 AND refund_id = $2 ORDER BY id`, account, record.RefundID)
	if err != nil {
		return p, err
	}
	for _, l := range earlier {
		if l.Digest == digest {
			return Placement{}, nil
		}
		if p.Earlier = l.Row; l.State != Rejected { // which a correction may differ from
			p.Changed = l.differs(record.Amount, record.Currency) != ""
		}
	}
	if p.Changed && !change {
		return p, nil
	}
	// Another transaction may enqueue the same record now: the first one does.
	p.Row, err = one[int64](ctx, tx, `
		INSERT INTO outbox_refund (account, refund_id, digest, content, amount, currency, enqueued_at, changed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
		ON CONFLICT (account, refund_id, digest) DO NOTHING RETURNING id`,
		account, record.RefundID, digest, string(content), record.Amount, record.Currency, timeText(time.Now()))
	return p, err
}

// maxIndexed bounds what stands in an index, where PostgreSQL takes no more than
// about 2,700 bytes a row.
const maxIndexed = 512

// gatekeeper is a client that sends nothing: it knows what the library refuses.
var gatekeeper = sync.OnceValues(func() (*refunds.Client, error) { return refunds.NewClient("https://localhost") })

// Acceptable tells whether a record can be stored, and later be sent. Its errors
// quote nothing of the record.
func Acceptable(account string, record *refunds.Refund) error {
	client, err := gatekeeper()
	switch {
	case err != nil:
		return err
	case record == nil || strings.TrimSpace(record.RefundID) == "":
		return errors.New("refund_id is missing")
	case len(account) > maxIndexed:
		return fmt.Errorf("the account is longer than %d bytes", maxIndexed)
	case len(record.RefundID) > maxIndexed:
		return fmt.Errorf("refund_id is longer than %d bytes", maxIndexed)
	case strings.ContainsRune(account+record.RefundID+record.Currency, 0): // no text in PostgreSQL
		return errors.New("the account, refund_id or currency holds a NUL character")
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err = client.Submit(ended, account, record); errors.Is(err, refunds.ErrInvalidArgument) {
		return err
	}
	return nil
}
