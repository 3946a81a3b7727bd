package main

import (
	"context"
	"time"
)

// The states of a refund; schema.sql says what they mean.
const (
	pending  = "pending"
	sending  = "sending"
	accepted = "accepted"
	rejected = "rejected"
	unknown  = "unknown"
)

// A claim is a refund that a worker has marked as sending.
type claim struct {
	row      int64
	account  string
	content  []byte
	attempt  int
	refusals int       // in a row, before this attempt
	marked   time.Time // a little before the marker was committed
}

// take marks a refund as sending, and returns its claim, or nil if it is not to be
// sent now. When take returns, the marker is committed: whoever finds it later,
// without an outcome, knows that the request may have left.
//
// Records of one refund_id go in the order of their rows, one at a time, and none
// passes one whose outcome is unknown.
func take(ctx context.Context, db session, row int64, worker string) (c *claim, err error) {
	now := time.Now()
	err = db.query(ctx, func(scan scanner) error {
		c = &claim{row: row, marked: now}
		return scan(&c.account, &c.content, &c.attempt, &c.refusals)
	}, `UPDATE outbox_refund SET state = 'sending', attempts = attempts + 1, worker = $2, sent_at = $3, changed_at = $3
		WHERE id = $1 AND state = 'pending' AND NOT EXISTS (
			SELECT 1 FROM outbox_refund AS other
			WHERE other.account = outbox_refund.account AND other.refund_id = outbox_refund.refund_id AND other.id <> outbox_refund.id
			AND (other.state IN ('sending', 'unknown') OR other.state = 'pending' AND other.id < outbox_refund.id))
		RETURNING account, content, attempts, refusals`, row, worker, timeText(now))
	return c, err
}

// A standing is why a refund cannot be claimed.
type standing struct {
	state   string
	attempt int
	since   time.Time // it has the state
	stopped bool      // behind a record of the same refund_id whose outcome is unknown
}

func look(ctx context.Context, db session, row int64) (s standing, err error) {
	err = db.query(ctx, func(scan scanner) error {
		var since string
		defer func() { s.since = parseTime(since) }()
		return scan(&s.state, &s.attempt, &since, &s.stopped)
	}, `SELECT state, attempts, changed_at, EXISTS (
			SELECT 1 FROM outbox_refund AS other
			WHERE other.account = this.account AND other.refund_id = this.refund_id AND other.id <> this.id AND other.state = 'unknown')
		FROM outbox_refund AS this WHERE id = $1`, row)
	return s, err
}

// An outcome is what became of an attempt.
type outcome struct {
	state     string // pending: nothing was recorded, and it is to be sent again
	status    int
	reason    string
	message   string
	requestID string
	wait      time.Duration // that the service asked for
	failed    bool          // the service or the way to it is in trouble
	refused   bool          // for a reason that is not the refund's own
}

// settle records what became of an attempt. It reports false if the attempt is no
// longer the refund's last one, or was settled otherwise.
func settle(ctx context.Context, db session, row int64, attempt int, from string, o outcome) (bool, error) {
	refused := 0
	if o.refused {
		refused = 1
	}
	n, err := db.exec(ctx, `
		UPDATE outbox_refund SET state = $4, status_code = $5, reason = $6, message = $7, request_id = $8, changed_at = $9,
			refusals = CASE WHEN $10 = 1 THEN refusals + 1 ELSE 0 END
		WHERE id = $1 AND attempts = $2 AND state = $3`,
		row, attempt, from, o.state, o.status, o.reason, o.message, o.requestID, timeText(time.Now()), refused)
	return n == 1, err
}

// A decision is somebody's word on a refund.
type decision struct{ who, what, note string }

// What is decided.
const (
	decidedAccepted    = "accepted"
	decidedNotRecorded = "not recorded"
	decidedResubmit    = "resubmit"
	decidedSeen        = "seen" // a late answer that came after a decision
	lateAnswer         = "late answer"
	afterDecision      = "late answer, after a decision"
)

func note(ctx context.Context, db session, row int64, attempt int, d decision) error {
	_, err := db.exec(ctx, `INSERT INTO outbox_decision (refund, attempt, decided_at, who, what, note) VALUES ($1, $2, $3, $4, $5, $6)`,
		row, attempt, timeText(time.Now()), d.who, d.what, d.note)
	return err
}

// decide settles a refund on somebody's word, or has it sent again after a while.
// It reports false if the refund has another state by now.
func decide(ctx context.Context, tx transaction, row int64, attempt int, from string, d decision, after time.Duration) (bool, error) {
	o := outcome{state: pending, reason: d.what}
	if d.what == decidedAccepted {
		o.state = accepted
	}
	done, err := settle(ctx, tx, row, attempt, from, o)
	if err != nil || !done {
		return false, err
	}
	if err := note(ctx, tx, row, attempt, d); err != nil {
		return false, err
	}
	return true, wake(ctx, tx, row, after)
}

// wake gives jobs to the records of a refund_id that can go on, now that one of
// them is unknown no more. A job too many does no harm.
func wake(ctx context.Context, tx transaction, row int64, after time.Duration) error {
	var rows []int64
	err := tx.query(ctx, func(scan scanner) error {
		var id int64
		err := scan(&id)
		rows = append(rows, id)
		return err
	}, `SELECT other.id FROM outbox_refund AS this
		JOIN outbox_refund AS other ON other.account = this.account AND other.refund_id = this.refund_id
		WHERE this.id = $1 AND other.state = 'pending' ORDER BY other.id`, row)
	if err != nil || len(rows) == 0 {
		return err
	}
	return tx.insertJobs(ctx, jobsFor(after, rows...))
}
