CREATE TABLE IF NOT EXISTS outbox_refund (
    id          {{identity}},
    account     TEXT NOT NULL,
    refund_id   TEXT NOT NULL,
    digest      TEXT NOT NULL,
    content     TEXT NOT NULL,
    amount      BIGINT,
    currency    TEXT NOT NULL,
    enqueued_at TEXT NOT NULL,

    state       TEXT NOT NULL DEFAULT 'pending'
                CHECK (state IN ('pending', 'sending', 'accepted', 'rejected', 'unknown')),
    attempts    INTEGER NOT NULL DEFAULT 0,
    refusals    INTEGER NOT NULL DEFAULT 0,
    worker      TEXT NOT NULL DEFAULT '',
    sent_at     TEXT NOT NULL DEFAULT '',
    changed_at  TEXT NOT NULL,
    status_code INTEGER NOT NULL DEFAULT 0,
    reason      TEXT NOT NULL DEFAULT '',
    message     TEXT NOT NULL DEFAULT '',
    request_id  TEXT NOT NULL DEFAULT '',

    UNIQUE (account, refund_id, digest)
);

CREATE UNIQUE INDEX IF NOT EXISTS outbox_refund_in_flight ON outbox_refund (account, refund_id) WHERE state = 'sending';
CREATE INDEX IF NOT EXISTS outbox_refund_open ON outbox_refund (state, id) WHERE state <> 'accepted';

CREATE TABLE IF NOT EXISTS outbox_decision (
    id       {{identity}},
    refund   BIGINT NOT NULL REFERENCES outbox_refund (id),
    attempt  INTEGER NOT NULL,
    decided_at TEXT NOT NULL,
    who      TEXT NOT NULL,
    what     TEXT NOT NULL,
    note     TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS outbox_decision_refund ON outbox_decision (refund);
