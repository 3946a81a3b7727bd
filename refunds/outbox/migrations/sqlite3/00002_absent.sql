-- +goose Up

-- SQLite cannot change a CHECK: the table is made anew. It names the columns that
-- it copies, because some tables of version 1 have one more.
CREATE TABLE outbox_refund_new (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    account       TEXT NOT NULL,
    refund_id     TEXT NOT NULL,
    digest        TEXT NOT NULL, -- of the content: the same content is taken once
    content       TEXT NOT NULL, -- the record as JSON, as it is sent
    amount        BIGINT,
    currency      TEXT NOT NULL,
    enqueued_at   TEXT NOT NULL,
    state         TEXT NOT NULL DEFAULT 'pending'
                  CHECK (state IN ('pending', 'sending', 'accepted', 'rejected', 'unknown', 'absent')),
    attempts      INTEGER NOT NULL DEFAULT 0, -- times that it was marked as sending
    doubtful      INTEGER NOT NULL DEFAULT 0, -- the first attempt that may have been recorded; 0: none
    worker        TEXT NOT NULL DEFAULT '',   -- that marked it last
    first_sent_at TEXT NOT NULL DEFAULT '',   -- when it was marked first
    sent_at       TEXT NOT NULL DEFAULT '',   -- when it was marked last
    changed_at    TEXT NOT NULL,              -- when the state last changed
    asked_at      TEXT NOT NULL DEFAULT '',   -- when the resolver was last asked
    absent_until  TEXT NOT NULL DEFAULT '',   -- the time until which the report is complete that does not have it
    status_code   INTEGER NOT NULL DEFAULT 0, -- of the last response
    reason        TEXT NOT NULL DEFAULT '',   -- for a person
    message       TEXT NOT NULL DEFAULT '',   -- in the service's words; never printed
    request_id    TEXT NOT NULL DEFAULT '',   -- to quote to the service's operator
    UNIQUE (account, refund_id, digest)
);
INSERT INTO outbox_refund_new (id, account, refund_id, digest, content, amount, currency, enqueued_at, state, attempts,
    worker, first_sent_at, sent_at, changed_at, status_code, reason, message, request_id)
SELECT id, account, refund_id, digest, content, amount, currency, enqueued_at, state, attempts,
    worker, sent_at, sent_at, changed_at, status_code, reason, message, request_id FROM outbox_refund;
DROP TABLE outbox_refund;
ALTER TABLE outbox_refund_new RENAME TO outbox_refund;
CREATE UNIQUE INDEX outbox_refund_in_flight ON outbox_refund (account, refund_id) WHERE state = 'sending';
CREATE INDEX outbox_refund_open ON outbox_refund (state, id) WHERE state <> 'accepted';

-- What was sent again on somebody's word may have been recorded the time before: a
-- rejection after that proves nothing.
UPDATE outbox_refund SET doubtful = 1 WHERE state = 'unknown' OR EXISTS (
    SELECT 1 FROM outbox_decision AS d WHERE d.refund = outbox_refund.id AND d.what IN ('resubmit', 'not recorded'));
UPDATE outbox_refund SET state = 'unknown' WHERE state = 'rejected' AND doubtful > 0;

-- Why the queue is paused, and until when: of one row.
CREATE TABLE outbox_pause (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    until  TEXT NOT NULL,
    reason TEXT NOT NULL
);

-- The jobs went to a queue of their own. A worker inserts those that are missing.
DELETE FROM river_job WHERE kind = 'submit_refund' AND queue = 'default';
