// Package outbox keeps refunds in your database and submits each once, although callers repeat
// requests, messages come twice, and processes are killed.
//
//	box, err := outbox.OpenPostgres(pool) // or OpenSQLite(db)
//	…
//	err = box.Migrate(ctx) // when you deploy
//
// A caller that waits for the outcome, such as an HTTP handler, calls [Outbox.Submit]. It books the
// refund and sends it now, without a worker:
//
//	entry, err := box.Submit(ctx, client, outbox.Item{AccountID: account, Refund: refund})
//
// The consumer of a queue, or a transaction with rows of its own, calls [Outbox.Enqueue]. A worker
// sends the refund later:
//
//	tx, err := pool.Begin(ctx)
//	_, err = tx.Exec(ctx, `UPDATE orders SET refunded = TRUE WHERE id = $1`, id)
//	_, err = box.EnqueuePgx(ctx, tx, outbox.Item{AccountID: account, Refund: refund})
//	err = tx.Commit(ctx)
//	…
//	err = box.Run(ctx, outbox.Config{Client: client}) // in each worker, until ctx ends
//
// A job over a file calls [Outbox.EnqueueAll], and then Run with Drain. All three can be used for the
// same refunds. [Outbox.Get] says what became of one. One Client for all accounts is enough. Its
// options hold, such as [refunds.WithRefusals].
//
// # What is guaranteed
//
// A refund is booked in one commit, and with your own rows if you Enqueue it. The state [Sending] is
// committed before the request leaves, and the outcome after the response. If a refund is in that
// state for a minute, its process is dead. Its request may have left, so the refund is [Unknown].
//
// An unknown refund is sent again only after a decision. It is made by a person ([Outbox.Decide]),
// by your function (Config.FindOut), by a message that you got ([Outbox.Tell]), or by the
// configuration (Config.Resubmit). The decision is committed before the refund is sent again.
//
// Records with one refund_id, such as a refund and a later update of it, are sent one
// at a time in the order of their rows. None overtakes one that is unknown.
//
// # What is not guaranteed
//
// The service documents no way to ask whether it has a refund. If you have one, give it to the
// worker as Config.FindOut. Otherwise some refunds stay unknown until somebody compares them with
// a report ([Outbox.Compare]) or looks them up.
//
// A commit that the database loses is lost here, too. Submit and Run refuse a database that may lose
// commits (synchronous_commit=off in PostgreSQL, synchronous below FULL in SQLite). A
// PostgreSQL that fails over to a standby needs synchronous replication, and a clock that agrees
// to some seconds. A restored backup does not know what was sent after it was made. Compare with a
// report before anything is sent from it.
//
// # Engine and tables
//
// The queue is [River]. Its jobs hold the number of a row and nothing else. The tables are
// outbox_refund, outbox_decision, outbox_question and outbox_version, where the connection creates
// tables by default, and River's, which begin with river_: in PostgreSQL in the schema "outbox", in
// SQLite in the same file. Do not run another program's River on them. For an audit, outbox_decision has
// each decision with who, when and why.
//
// Records stand in outbox_refund as JSON, and the bodies of receipts. The logs, errors and reports of
// this package show no more of a record than its row, account, refund_id, amount and currency.
//
// [River]: https://riverqueue.com
package outbox
