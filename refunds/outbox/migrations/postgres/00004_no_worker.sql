-- +goose Up

-- River knows whether a worker lives.
DROP TABLE outbox_worker;
