package outbox_test

import (
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	_ "modernc.org/sqlite"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/outbox"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// refundFile submits the refunds of a CSV file. If it was killed, call it again with the same file.
func refundFile(ctx context.Context, box *outbox.Outbox, client *refunds.Client, file io.Reader) error {
	lines := csv.NewReader(file)
	var read error
	items := func(yield func(outbox.Item) bool) {
		for {
			var cells []string
			var amount int64
			if cells, read = lines.Read(); read == nil {
				amount, read = strconv.ParseInt(cells[1], 10, 64)
			}
			if read != nil || !yield(outbox.Item{AccountID: "acct_7", Refund: &refunds.Refund{RefundID: cells[0], Amount: &amount, Currency: cells[2]}}) {
				return
			}
		}
	}
	for e, err := range box.EnqueueAll(ctx, items) {
		if err != nil {
			return err
		}
		if e.Err != nil { // the others are booked
			fmt.Println("line", e.Index+1, "is left out:", e.Err)
		}
	}
	if !errors.Is(read, io.EOF) {
		return read
	}
	return box.Run(ctx, outbox.Config{Client: client, Drain: true})
}

// A job over a file, which goes on after a kill.
func ExampleOutbox_EnqueueAll() {
	ctx, kill := context.WithCancel(context.Background())
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "outbox-")
	check(err)
	defer os.RemoveAll(dir)
	const settings = "?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate" // see OpenSQLite
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "refunds.db")+settings)
	check(err)
	defer db.Close()
	box, err := outbox.OpenSQLite(db)
	check(err)
	check(box.Migrate(ctx)) // when you deploy

	const file = "rf_1,500,USD\nrf_1,600,USD\nrf_2,700,USD\n"
	service := refundstest.NewServer(nil) // stands in for the service
	defer service.Close()
	client := service.Client(refunds.WithLimiter(before(kill))) // before the first request
	check(refundFile(ctx, box, client, strings.NewReader(file)))
	check(refundFile(context.Background(), box, client, strings.NewReader(file)))
	entries, err := box.List(context.Background())
	check(err)
	for _, e := range entries {
		fmt.Println(e.RefundID, e.State)
	}
	fmt.Println("sent:", len(service.Requests()))
	// Output:
	// line 2 is left out: outbox: an earlier record has this refund_id with another amount or currency: row 1
	// line 2 is left out: outbox: an earlier record has this refund_id with another amount or currency: row 1
	// rf_1 accepted
	// rf_2 accepted
	// sent: 2
}

type before func()

func (f before) Wait(context.Context) error { f(); return nil }
