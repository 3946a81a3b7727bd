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

// The response to the second refund is lost: nobody knows whether the service has it, until its report
// says so.
func ExampleOutbox_Compare() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "outbox-")
	check(err)
	defer os.RemoveAll(dir)
	db := openFile(filepath.Join(dir, "refunds.db"))
	defer db.Close()
	box, err := outbox.OpenSQLite(db)
	check(err)
	check(box.Migrate(ctx))
	service := refundstest.NewServer(nil)
	defer service.Close()
	service.Script(refundstest.Fault{}, refundstest.Fault{Drop: true, Process: true})
	for _, id := range []string{"rf_1", "rf_2"} {
		refund := &refunds.Refund{RefundID: id, Amount: new(int64(2500)), Currency: "USD"}
		_, err := box.Submit(ctx, service.Client(), outbox.Item{AccountID: "acct_7", Refund: refund})
		check(err)
	}
	list(ctx, box)

	// The service's operator sends a report. Look at what it says before you decide.
	comparison, err := box.Compare(ctx, outbox.Report{Until: time.Now(), Rows: []outbox.ReportRow{
		{Line: 2, AccountID: "acct_7", RefundID: "rf_1", Amount: new(int64(2500)), Currency: "USD"},
		{Line: 3, AccountID: "acct_7", RefundID: "rf_2", Amount: new(int64(2500)), Currency: "USD"},
	}})
	check(err)
	fmt.Println("found:", len(comparison.Found), "not found:", len(comparison.NotFound), "differences:", comparison.Differences)
	_, err = box.Decide(ctx, comparison.Found, outbox.Recorded, "ann", "report of January")
	check(err)
	list(ctx, box)
	// Output:
	// rf_1 accepted
	// rf_2 unknown
	// found: 1 not found: 0 differences: []
	// rf_1 accepted
	// rf_2 accepted
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

// A webhook of the service tells of a refund whose response was lost. What it says later, to the
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
	service := refundstest.NewServer(nil)
	defer service.Close()
	service.Script(refundstest.Fault{Drop: true, Process: true})
	_, err = box.Submit(ctx, service.Client(), outbox.Item{AccountID: "acct_7", Refund: &refunds.Refund{RefundID: "rf_1"}})
	check(err)
	list(ctx, box)

	for _, says := range []outbox.Verdict{outbox.Recorded, outbox.NotRecorded} {
		tx, err := db.BeginTx(ctx, nil) // in which you also write what the webhook says
		check(err)
		defer tx.Rollback()
		difference, err := box.Tell(ctx, tx, outbox.Notice{AccountID: "acct_7", RefundID: "rf_1", Verdict: says, By: "webhook", Why: "event 17"})
		check(err)
		if difference != nil {
			fmt.Println("look at row", difference.Row, "-", difference.What)
		}
		check(tx.Commit())
		list(ctx, box)
	}
	// Output:
	// rf_1 unknown
	// rf_1 accepted
	// look at row 1 - accepted here, and webhook says: not recorded
	// rf_1 accepted
}
