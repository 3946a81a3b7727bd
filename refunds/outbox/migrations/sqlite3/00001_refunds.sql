-- +goose Up

-- IF NOT EXISTS: tables from before the migrations were numbered are taken over.

-- A refund record, once, with what is known of it. River's jobs hold its id only.
CREATE TABLE IF NOT EXISTS outbox_refund (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    account     TEXT NOT NULL,
    refund_id   TEXT NOT NULL,
    digest      TEXT NOT NULL, -- of the content: the same content is taken once
    content     TEXT NOT NULL, -- the record as JSON, as it is sent
    amount      BIGINT,
    currency    TEXT NOT NULL,
    enqueued_at TEXT NOT NULL,
    state       TEXT NOT NULL DEFAULT 'pending'
                CHECK (state IN ('pending', 'sending', 'accepted', 'rejected', 'unknown')),
    attempts    INTEGER NOT NULL DEFAULT 0, -- times that it was marked as sending
    worker      TEXT NOT NULL DEFAULT '',   -- that marked it last
    sent_at     TEXT NOT NULL DEFAULT '',   -- when
    changed_at  TEXT NOT NULL,              -- when the state last changed
    status_code INTEGER NOT NULL DEFAULT 0, -- of the last response
    reason      TEXT NOT NULL DEFAULT '',   -- for a person
    message     TEXT NOT NULL DEFAULT '',   -- in the service's words; never printed
    request_id  TEXT NOT NULL DEFAULT '',   -- to quote to the service's operator
    UNIQUE (account, refund_id, digest)
);

-- Two records of one refund_id are never on the wire at the same time.
CREATE UNIQUE INDEX IF NOT EXISTS outbox_refund_in_flight ON outbox_refund (account, refund_id) WHERE state = 'sending';
CREATE INDEX IF NOT EXISTS outbox_refund_open ON outbox_refund (state, id) WHERE state <> 'accepted';

-- Every word that a refund was settled or sent again on.
CREATE TABLE IF NOT EXISTS outbox_decision (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    refund     BIGINT NOT NULL REFERENCES outbox_refund (id),
    attempt    INTEGER NOT NULL, -- the one that was decided about
    decided_at TEXT NOT NULL,
    who        TEXT NOT NULL,
    what       TEXT NOT NULL,
    note       TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS outbox_decision_refund ON outbox_decision (refund);
