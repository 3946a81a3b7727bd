package refunds_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// The statements are standard SQL, with the parameters of PostgreSQL and SQLite. In MySQL they are ?,
// and the connection needs clientFoundRows=true; in SQL Server they are @p1.
const (
	createTable = `CREATE TABLE refund (account VARCHAR(64), id VARCHAR(64), record TEXT NOT NULL, state VARCHAR(10) NOT NULL,
		call_id VARCHAR(64) NOT NULL, began BIGINT NOT NULL, PRIMARY KEY (account, id))`

	// Begin the call $4 at $5, in Unix seconds. If no row has changed, insert one, which fails if there
	// is one: another call has begun, or the refund is not to be sent. A retry renews its own row.
	beginAgain = `UPDATE refund SET state = 'begun', call_id = $4, began = $5 WHERE account = $1 AND id = $2 AND record = $3
		AND (state = 'resubmit' OR state = 'begun' AND call_id = $4)`
	begin = `INSERT INTO refund (account, id, record, call_id, began, state) VALUES ($1, $2, $3, $4, $5, 'begun')`

	// End the call $3 with the action $4. If the refund was accepted and no row has changed, another
	// call has begun meanwhile: raise an alarm.
	end = `UPDATE refund SET state = $4 WHERE account = $1 AND id = $2 AND call_id = $3
		AND (state = 'begun' OR $4 = 'done' AND state IN ('done', 'find out', 'resubmit'))`

	// Settle the call $3 once you have found out, or corrected the record or the set-up: $4 is 'done'
	// or 'resubmit', and $5 the record, which may be corrected.
	settle = `UPDATE refund SET state = $4, record = $5 WHERE account = $1 AND id = $2 AND call_id = $3
		AND state IN ('find out', 'correct', 'fix setup')`

	// Give up, every minute, what began before $1 and can no longer be in flight: before the timeout of
	// the call, and the time that you need to write. Its process was killed.
	giveUp = `UPDATE refund SET state = 'find out' WHERE state = 'begun' AND began < $1`
)

// submitOnce submits a refund unless its row says no, and returns the state of the row, or what to do if
// there is none. call is a new random id, and not that of a job or a message.
func submitOnce(ctx context.Context, db *database, client *refunds.Client, account string, r *refunds.Refund, call string) (string, error) {
	record, err := json.Marshal(r) // from what you have stored: another Created is another record
	if err != nil {
		return "", err
	}
	// A caller who leaves, or a shutdown, must not end the call: wait for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 90*time.Second)
	defer cancel()
	action := ""
	if state := db.state(account, r.RefundID); state == "" || state == refunds.ActionResubmit.String() {
		_, err := client.Submit(ctx, account, r, refunds.WithBeforeSend(func(ctx context.Context) error {
			now := time.Now().Unix()
			n, err := db.exec(ctx, beginAgain, account, r.RefundID, string(record), call, now)
			if err == nil && n == 0 {
				_, err = db.exec(ctx, begin, account, r.RefundID, string(record), call, now)
			}
			return err
		}))
		action = refunds.ActionOf(err).String()
		if _, err := db.exec(context.WithoutCancel(ctx), end, account, r.RefundID, call, action); err != nil {
			return "", err // it is begun, and given up later
		}
	}
	return cmp.Or(db.state(account, r.RefundID), action), nil
}

// A table of your own, for another database than PostgreSQL and SQLite, or one that exists. A row says what
// became of its refund, also after a kill: never delete one to begin again. Look for rows to resubmit, if
// no caller and no message comes again.
func ExampleWithBeforeSend() {
	service := refundstest.NewServer(nil) // stands in for the service
	defer service.Close()
	service.Script(refundstest.Fault{}, refundstest.Fault{Drop: true, Process: true})
	db, ctx := &database{rows: map[string]row{"rf_3": {state: "begun", call: "killed"}}}, context.Background()
	db.exec(ctx, createTable)
	for i, id := range []string{"rf_1", "rf_1", "rf_2", "rf_2", "rf_3"} {
		amount := int64(500)
		state, err := submitOnce(ctx, db, service.Client(), "acct_1", &refunds.Refund{RefundID: id, Amount: &amount}, fmt.Sprint("call ", i))
		fmt.Println(id, state, err)
	}
	fmt.Println("sent:", len(service.Requests()))

	db.exec(ctx, giveUp, time.Now().Add(-2*time.Minute).Unix())
	db.exec(ctx, settle, "acct_1", "rf_3", "killed", "done", "") // the service has it
	fmt.Println("rf_3", db.state("acct_1", "rf_3"))
	// Output:
	// rf_1 done <nil>
	// rf_1 done <nil>
	// rf_2 find out <nil>
	// rf_2 find out <nil>
	// rf_3 begun <nil>
	// sent: 2
	// rf_3 done
}

// A database stands for yours, where exec is ExecContext and RowsAffected, and state is
// SELECT state FROM refund WHERE account = $1 AND id = $2.
type database struct{ rows map[string]row }

type row struct{ record, state, call string }

func (d *database) state(_, id string) string { return d.rows[id].state }

func (d *database) exec(_ context.Context, statement string, args ...any) (int, error) {
	switch statement {
	case createTable:
		return 0, nil
	case giveUp:
		for id, r := range d.rows {
			if r.state == "begun" {
				d.rows[id] = row{r.record, "find out", r.call}
			}
		}
		return 0, nil
	}
	id := args[1].(string)
	r, there := d.rows[id]
	switch statement {
	case beginAgain:
		if call := args[3].(string); r.record == args[2] && (r.state == "resubmit" || r.state == "begun" && r.call == call) {
			d.rows[id] = row{r.record, "begun", call}
			return 1, nil
		}
	case begin:
		if there {
			return 0, errors.New("duplicate key")
		}
		d.rows[id] = row{args[2].(string), "begun", args[3].(string)}
		return 1, nil
	case end:
		if r.call == args[2] && r.state == "begun" {
			d.rows[id] = row{r.record, args[3].(string), r.call}
			return 1, nil
		}
	case settle:
		if r.call == args[2] && r.state == "find out" {
			d.rows[id] = row{args[4].(string), args[3].(string), r.call}
			return 1, nil
		}
	}
	return 0, nil
}
