package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/riverqueue/river/riverdriver/riversqlite"
)

// OpenSQLite opens the outbox in an SQLite file. The handle is for the outbox alone: it is
// limited to one connection, because SQLite takes one writer at a time. Open the file
// once more for your own statements; a transaction of either handle may be given to
// Enqueue. The driver is yours; modernc.org/sqlite is tested. Open the file with
//
//	sql.Open("sqlite", "file:"+path+
//		"?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
//
// WAL lets readers and the writer work at the same time, FULL keeps what is committed
// through a loss of power, and the others make writers wait for each other. Create the
// file with mode 0600: it holds your customers' refunds.
func OpenSQLite(db *sql.DB) (*Outbox, error) {
	if db == nil {
		return nil, errors.New("outbox: no handle")
	}
	db.SetMaxOpenConns(1)
	o := &Outbox{session: sqlSession{db, true}, jobArgs: "json_object", key: "INTEGER PRIMARY KEY AUTOINCREMENT"}
	o.transact = func(ctx context.Context, f func(session) error) error {
		began := time.Now()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		// SQLite does not queue writers: those that wait look again, at most every 100 ms.
		// Transactions in a tight loop would keep them waiting for as long as it runs.
		defer func() { time.Sleep(min(time.Since(began), 100*time.Millisecond)) }()
		defer tx.Rollback()
		if err := f(sqlSession{tx, true}); err != nil {
			return err
		}
		return tx.Commit()
	}
	o.fill = func(ctx context.Context, tx session, rows []booking) error {
		values := make([][]any, len(rows))
		for i := range rows {
			values[i] = append(rows[i].args(), rows[i].turn)
		}
		text, err := json.Marshal(values)
		if err == nil {
			_, err = tx.exec(ctx, `CREATE TEMPORARY TABLE `+incoming+` AS SELECT key AS n, value->>0 AS account, value->>1 AS refund_id, value->>2 AS digest,
				value->>3 AS content, value->>4 AS amount, value->>5 AS currency, value->>6 AS changes, value->>7 AS turn FROM json_each($1)`, string(text))
		}
		return err
	}
	o.inTurn = func(_ context.Context, f func() error) error { return f() }
	o.durable = func(ctx context.Context) error {
		level, err := one[int](ctx, o, `SELECT synchronous FROM pragma_synchronous`)
		if err == nil && level < 2 {
			err = errors.New("outbox: with PRAGMA synchronous below FULL a loss of power loses what was sent, and it would be sent again")
		}
		return err
	}
	return o, open(o, riversqlite.New(db))
}
