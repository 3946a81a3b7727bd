-- PostgreSQL and SQLite differ in NUMBER alone, which is replaced: a key that counts.

-- Which version these tables have, and which River's.
CREATE TABLE outbox_version (
    own   INTEGER NOT NULL,
    river INTEGER NOT NULL
);

-- A refund record, once, with what is known of it. River's jobs hold its id only.
CREATE TABLE outbox_refund (
    id          NUMBER,
    account     TEXT NOT NULL,
    refund_id   TEXT NOT NULL,
    digest      TEXT NOT NULL, -- of the content: the same content is taken once
    content     TEXT NOT NULL, -- the record as JSON, as it is sent
    amount      BIGINT,
    currency    TEXT NOT NULL,
    enqueued_at TEXT NOT NULL,
    state       TEXT NOT NULL DEFAULT 'pending'
                CHECK (state IN ('pending', 'sending', 'accepted', 'rejected', 'unknown')),
    attempts    INTEGER NOT NULL DEFAULT 0,     -- times that it was marked as sending
    doubtful    BOOLEAN NOT NULL DEFAULT FALSE, -- an attempt before the last one may have been recorded
    sent_at     TEXT NOT NULL DEFAULT '',       -- when it was marked last
    reason      TEXT NOT NULL DEFAULT '',       -- of the last outcome, for a person
    request_id  TEXT NOT NULL DEFAULT '',       -- to quote to the service's operator
    UNIQUE (account, refund_id, digest)
);

-- Two records of one refund_id are never on the wire at the same time.
CREATE UNIQUE INDEX outbox_refund_in_flight ON outbox_refund (account, refund_id) WHERE state = 'sending';
CREATE INDEX outbox_refund_open ON outbox_refund (state, id) WHERE state <> 'accepted';

-- Every word that a refund was settled or sent again on.
CREATE TABLE outbox_decision (
    id         NUMBER,
    refund     BIGINT NOT NULL REFERENCES outbox_refund (id),
    attempt    INTEGER NOT NULL, -- the one that was decided about
    decided_at TEXT NOT NULL,
    who        TEXT NOT NULL,
    what       TEXT NOT NULL,
    note       TEXT NOT NULL
);
CREATE INDEX outbox_decision_refund ON outbox_decision (refund);

-- Version 2.

-- When an unknown refund may be asked about again.
CREATE TABLE outbox_question (
    refund  BIGINT NOT NULL PRIMARY KEY REFERENCES outbox_refund (id),
    attempt INTEGER NOT NULL, -- the one that is asked about
    next_at TEXT NOT NULL
);

-- Version 3.

-- Which record of its refund_id it is, from 1: of two that are booked at the same time, one is the next.
ALTER TABLE outbox_refund ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
UPDATE outbox_refund SET number = (SELECT COUNT(*) FROM outbox_refund AS other
    WHERE other.account = outbox_refund.account AND other.refund_id = outbox_refund.refund_id AND other.id <= outbox_refund.id);
CREATE UNIQUE INDEX outbox_refund_number ON outbox_refund (account, refund_id, number);

-- When a pending refund is sent at the earliest; '': at once.
ALTER TABLE outbox_refund ADD COLUMN next_at TEXT NOT NULL DEFAULT '';

-- The receipt of an accepted refund.
ALTER TABLE outbox_refund ADD COLUMN status INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox_refund ADD COLUMN content_type TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox_refund ADD COLUMN body BYTEA;
