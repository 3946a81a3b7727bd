-- +goose Up

ALTER TABLE outbox_refund DROP CONSTRAINT IF EXISTS outbox_refund_state_check;
ALTER TABLE outbox_refund ADD CONSTRAINT outbox_refund_state_check
    CHECK (state IN ('pending', 'sending', 'accepted', 'rejected', 'unknown', 'absent'));
ALTER TABLE outbox_refund DROP COLUMN IF EXISTS refusals; -- which some tables of version 1 have
ALTER TABLE outbox_refund
    ADD COLUMN doubtful INTEGER NOT NULL DEFAULT 0,   -- the first attempt that may have been recorded; 0: none
    ADD COLUMN first_sent_at TEXT NOT NULL DEFAULT '', -- when it was marked first
    ADD COLUMN asked_at TEXT NOT NULL DEFAULT '',      -- when the resolver was last asked
    ADD COLUMN absent_until TEXT NOT NULL DEFAULT '';  -- the time until which the report is complete that does not have it
UPDATE outbox_refund SET first_sent_at = sent_at WHERE sent_at <> '';

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

-- The jobs went to a queue and a schema of their own. A worker inserts those that
-- are missing.
-- +goose StatementBegin
DO $$ BEGIN
    IF to_regclass('river_job') IS NOT NULL THEN
        DELETE FROM river_job WHERE kind = 'submit_refund' AND queue = 'default';
    END IF;
END $$;
-- +goose StatementEnd
