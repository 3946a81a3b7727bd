CREATE TABLE IF NOT EXISTS outbox_refund (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
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
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    refund   BIGINT NOT NULL REFERENCES outbox_refund (id),
    attempt  INTEGER NOT NULL,
    decided_at TEXT NOT NULL,
    who      TEXT NOT NULL,
    what     TEXT NOT NULL,
    note     TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS outbox_decision_refund ON outbox_decision (refund);
INSERT INTO outbox_refund (account, refund_id, digest, content, amount, currency, enqueued_at, state, attempts, worker, sent_at, changed_at, status_code, reason, request_id) VALUES
	('acct', 'a', 'd1', '{"refund_id":"a","amount":5}', 5, '', '2026-01-01T00:00:00.000Z', 'pending', 0, '', '', '2026-01-01T00:00:00.000Z', 0, '', ''),
	('acct', 'b', 'd2', '{"refund_id":"b"}', NULL, 'EUR', '2026-01-01T00:00:00.000Z', 'sending', 1, 'dead', '2026-01-01T00:01:00.000Z', '2026-01-01T00:01:00.000Z', 0, '', ''),
	('acct', 'c', 'd3', '{"refund_id":"c"}', 5, 'EUR', '2026-01-01T00:00:00.000Z', 'accepted', 1, 'dead', '2026-01-01T00:01:00.000Z', '2026-01-01T00:01:00.000Z', 201, '', 'req_1'),
	('acct', 'd', 'd4', '{"refund_id":"d"}', 5, 'EUR', '2026-01-01T00:00:00.000Z', 'rejected', 1, 'dead', '2026-01-01T00:01:00.000Z', '2026-01-01T00:01:00.000Z', 422, '422 x', 'req_2'),
	('acct', 'e', 'd5', '{"refund_id":"e"}', 5, 'EUR', '2026-01-01T00:00:00.000Z', 'unknown', 2, 'dead', '2026-01-01T00:01:00.000Z', '2026-01-01T00:01:00.000Z', 0, 'timeout', 'req_3'),
	('acct', 'f', 'd6', '{"refund_id":"f"}', 5, 'EUR', '2026-01-01T00:00:00.000Z', 'rejected', 2, 'dead', '2026-01-01T00:01:00.000Z', '2026-01-01T00:01:00.000Z', 409, '409 Conflict', 'req_4');
INSERT INTO outbox_decision (refund, attempt, decided_at, who, what, note) VALUES (6, 1, '2026-01-01T00:01:00.000Z', 'ann', 'resubmit', 'they said so');
