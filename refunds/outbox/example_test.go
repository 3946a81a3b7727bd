package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/outbox"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// A shop is an application with two orders to refund.
type shop struct {
	db      *sql.DB // its own handle
	box     *outbox.Outbox
	service *refundstest.Server
	close   func()
}

func openShop(ctx context.Context) *shop {
	dir, err := os.MkdirTemp("", "outbox-")
	check(err)
	open := func() *sql.DB {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+
			"?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
		check(err)
		return db
	}
	own, db := open(), open()
	box, err := outbox.OpenSQLite(own)
	check(err)
	check(box.Migrate(ctx))
	_, err = db.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY, refunded BOOLEAN); INSERT INTO orders VALUES (1001, FALSE), (1002, FALSE)`)
	check(err)
	service := refundstest.Start()
	return &shop{db, box, service, func() {
		service.Close()
		db.Close()
		own.Close()
		os.RemoveAll(dir)
	}}
}

// refund books the refund of an order: both rows are there, or neither.
func (s *shop) refund(ctx context.Context, order, amount int64) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `UPDATE orders SET refunded = TRUE WHERE id = ?`, order); err != nil {
		return err
	}
	refund := &refunds.Refund{RefundID: fmt.Sprint("rf_", order), Amount: &amount, Currency: "USD"}
	if _, err := s.box.Enqueue(ctx, tx, outbox.Item{AccountID: "acct_7", Refund: refund}); err != nil {
		return err
	}
	return tx.Commit()
}

// list prints the refunds.
func (s *shop) list(ctx context.Context) {
	entries, err := s.box.List(ctx)
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
	s := openShop(ctx)
	defer s.close()
	check(s.refund(ctx, 1001, 10150))
	check(s.refund(ctx, 1002, 2500))

	// A worker is usually a process of its own, and runs until its context ends.
	s.service.Script(refundstest.Fault{}, refundstest.Fault{DropAfter: true})
	check(s.box.Run(ctx, outbox.Config{Client: s.service.Client(), Concurrency: 1, Drain: true}))
	s.list(ctx)

	// The service's operator sends a report. Look at what it says before you decide.
	comparison, err := s.box.Compare(ctx, outbox.Report{Until: time.Now(), Rows: []outbox.ReportRow{
		{Line: 2, AccountID: "acct_7", RefundID: "rf_1001", Amount: new(int64(10150)), Currency: "USD"},
		{Line: 3, AccountID: "acct_7", RefundID: "rf_1002", Amount: new(int64(2500)), Currency: "USD"},
	}})
	check(err)
	fmt.Println("found:", len(comparison.Found), "not found:", len(comparison.NotFound), "differences:", comparison.Differences)
	_, err = s.box.Decide(ctx, comparison.Found, outbox.Recorded, "ann", "report of January")
	check(err)
	s.list(ctx)
	// Output:
	// rf_1001 accepted
	// rf_1002 unknown
	// found: 1 not found: 0 differences: []
	// rf_1001 accepted
	// rf_1002 accepted
}

// In PostgreSQL, a refund is booked in a transaction of pgx, or of database/sql by Enqueue.
func ExampleOutbox_EnqueuePgx() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	check(err)
	defer pool.Close()
	box, err := outbox.OpenPostgres(pool)
	check(err)
	check(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE orders SET refunded = TRUE WHERE id = $1`, 1001); err != nil {
			return err
		}
		refund := &refunds.Refund{RefundID: "rf_1001", Amount: new(int64(10150)), Currency: "USD"}
		_, err := box.EnqueuePgx(ctx, tx, outbox.Item{AccountID: "acct_7", Refund: refund})
		return err
	}))
}
