package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/outbox"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// openFile opens a database as OpenSQLite says.
func openFile(file string) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+file+
		"?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	check(err)
	return db
}

// bookRefund books the refund of an order: both rows are there, or neither.
func bookRefund(ctx context.Context, db *sql.DB, box *outbox.Outbox, order, amount int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `UPDATE orders SET refunded = TRUE WHERE id = ?`, order); err != nil {
		return err
	}
	refund := &refunds.Refund{RefundID: fmt.Sprint("rf_", order), Amount: &amount, Currency: "USD"}
	if _, err := box.Enqueue(ctx, tx, outbox.Item{AccountID: "acct_7", Refund: refund}); err != nil {
		return err
	}
	return tx.Commit()
}

// list prints the refunds.
func list(ctx context.Context, box *outbox.Outbox) {
	entries, err := box.List(ctx)
	check(err)
	for _, e := range entries {
		fmt.Println(e.RefundID, e.State)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Two refunds are booked with the application's rows, and sent. The response to the second
// one is lost: nobody knows whether the service has it, until its report says so.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "outbox-")
	check(err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "shop.db")
	own, db := openFile(file), openFile(file)
	defer own.Close()
	defer db.Close()
	box, err := outbox.OpenSQLite(own)
	check(err)
	check(box.Migrate(ctx))
	_, err = db.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY, refunded BOOLEAN); INSERT INTO orders VALUES (1001, FALSE), (1002, FALSE)`)
	check(err)
	check(bookRefund(ctx, db, box, 1001, 10150))
	check(bookRefund(ctx, db, box, 1002, 2500))

	// A worker is usually a process of its own, and runs until its context ends.
	service := refundstest.NewServer(nil)
	defer service.Close()
	service.Script(refundstest.Fault{}, refundstest.Fault{Drop: true, Process: true})
	check(box.Run(ctx, outbox.Config{Client: service.Client(), Concurrency: 1, Drain: true}))
	list(ctx, box)

	// The service's operator sends a report. Look at what it says before you decide.
	comparison, err := box.Compare(ctx, outbox.Report{Until: time.Now(), Rows: []outbox.ReportRow{
		{Line: 2, AccountID: "acct_7", RefundID: "rf_1001", Amount: new(int64(10150)), Currency: "USD"},
		{Line: 3, AccountID: "acct_7", RefundID: "rf_1002", Amount: new(int64(2500)), Currency: "USD"},
	}})
	check(err)
	fmt.Println("found:", len(comparison.Found), "not found:", len(comparison.NotFound), "differences:", comparison.Differences)
	_, err = box.Decide(ctx, comparison.Found, outbox.Recorded, "ann", "report of January")
	check(err)
	list(ctx, box)
	// Output:
	// rf_1001 accepted
	// rf_1002 unknown
	// found: 1 not found: 0 differences: []
	// rf_1001 accepted
	// rf_1002 accepted
}

// A worker asks about an unknown refund, and a webhook tells of another one. The question comes a
// minute after the request, so a Drain that asks takes a minute.
func ExampleConfig_findOut() {
	ledger := map[string]bool{"rf_1002": true} // what your processor has
	findOut := func(ctx context.Context, e outbox.Entry) (outbox.Verdict, error) {
		if ledger[e.RefundID] {
			return outbox.Recorded, nil
		}
		return outbox.NotRecorded, nil
	}
	config := outbox.Config{FindOut: findOut, FindOutFor: 12 * time.Hour, ResubmitNotRecorded: true}
	for _, id := range []string{"rf_1002", "rf_1003"} {
		verdict, err := config.FindOut(context.Background(), outbox.Entry{AccountID: "acct_7", RefundID: id})
		fmt.Println(id, verdict, err)
	}
	// Output:
	// rf_1002 accepted <nil>
	// rf_1003 not recorded <nil>
}

// A webhook of the service tells of a refund before its response has come. What it says later, to the
// contrary, is for a person.
func ExampleOutbox_Tell() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "outbox-")
	check(err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "shop.db")
	own, db := openFile(file), openFile(file)
	defer own.Close()
	defer db.Close()
	box, err := outbox.OpenSQLite(own)
	check(err)
	check(box.Migrate(ctx))
	_, err = db.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY, refunded BOOLEAN); INSERT INTO orders VALUES (1001, FALSE)`)
	check(err)
	check(bookRefund(ctx, db, box, 1001, 10150))

	told := func(v outbox.Verdict) {
		tx, err := db.BeginTx(ctx, nil)
		check(err)
		defer tx.Rollback()
		difference, err := box.Tell(ctx, tx, outbox.Notice{AccountID: "acct_7", RefundID: "rf_1001", Verdict: v, By: "webhook", Why: "event 17"})
		check(err)
		if difference != nil {
			fmt.Println("look at row", difference.Row, "-", difference.What)
		}
		check(tx.Commit())
	}
	told(outbox.Recorded)
	list(ctx, box)
	told(outbox.NotRecorded)
	list(ctx, box)
	// Output:
	// rf_1001 accepted
	// look at row 1 - accepted here, and webhook says: not recorded
	// rf_1001 accepted
}
