-- +goose Up

-- Which workers live.
CREATE TABLE outbox_worker (
    name    TEXT PRIMARY KEY,
    seen_at TEXT NOT NULL -- when it last said so
);
