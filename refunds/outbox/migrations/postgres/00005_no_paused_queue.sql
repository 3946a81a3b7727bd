-- +goose Up

-- Workers look at outbox_pause, and River's queue is not paused any more.
UPDATE outbox.river_queue SET paused_at = NULL WHERE name = 'outbox_refunds' AND EXISTS (SELECT 1 FROM outbox_pause);
