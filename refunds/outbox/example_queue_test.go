package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/outbox"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// book books the refund of a message together with a row of the application: both, or neither.
func book(ctx context.Context, db *sql.DB, box *outbox.Outbox, message string) error {
	refund := new(refunds.Refund)
	if err := json.Unmarshal([]byte(message), refund); err != nil {
		return fmt.Errorf("%w: %w", refunds.ErrInvalidArgument, err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `UPDATE orders SET refunded = TRUE WHERE id = ?`, refund.TransactionOrderID); err != nil {
		return err
	}
	if _, err := box.Enqueue(ctx, tx, outbox.Item{AccountID: "acct_7", Refund: refund}); err != nil {
		return err
	}
	return tx.Commit()
}

// The consumer of a queue, whose messages may come twice, and a worker.
func ExampleOutbox_Enqueue() {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "outbox-")
	check(err)
	defer os.RemoveAll(dir)
	const settings = "?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate" // see OpenSQLite
	file := "file:" + filepath.Join(dir, "shop.db") + settings
	own, err := sql.Open("sqlite", file) // of the outbox
	check(err)
	defer own.Close()
	db, err := sql.Open("sqlite", file) // of the application
	check(err)
	defer db.Close()
	box, err := outbox.OpenSQLite(own)
	check(err)
	check(box.Migrate(ctx)) // when you deploy
	_, err = db.Exec(`CREATE TABLE orders (id TEXT PRIMARY KEY, refunded BOOLEAN); INSERT INTO orders VALUES ('17', FALSE)`)
	check(err)

	const message = `{"refund_id":"rf_1","amount":500,"currency":"USD","transaction_order_id":"17"}`
	for _, m := range []string{message, message, `{"refund_id":"rf_1","amount":900,"currency":"USD"}`} {
		switch err := book(ctx, db, box, m); {
		case err == nil:
			fmt.Println("acknowledge it")
		case errors.Is(err, outbox.ErrAmountChanged), errors.Is(err, refunds.ErrInvalidArgument):
			fmt.Println("set it aside:", err)
		default:
			fmt.Println("let it come again:", err)
		}
	}
	service := refundstest.NewServer(nil) // stands in for the service
	defer service.Close()
	check(box.Run(ctx, outbox.Config{Client: service.Client(), Drain: true})) // elsewhere, without Drain: until ctx ends
	entries, err := box.List(ctx)
	check(err)
	for _, e := range entries {
		fmt.Println(e.RefundID, e.State)
	}
	fmt.Println("sent:", len(service.Requests()))
	// Output:
	// acknowledge it
	// acknowledge it
	// set it aside: outbox: an earlier record has this refund_id with another amount or currency: row 1
	// rf_1 accepted
	// sent: 1
}
