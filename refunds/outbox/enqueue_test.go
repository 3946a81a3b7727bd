package outbox

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/refunds"
)

// TestEnqueue: the same record is taken once, other content is an update, and another
// amount is refused, unless it is wanted or corrects a rejected record.
func TestEnqueue(t *testing.T) {
	s := newSystem(t)
	update := refund("a", 5)
	update.SVCCodes.SVCRefundStatus = "done"
	for i, test := range []struct {
		item Item
		want Enqueued
		err  error
	}{
		{Item{"acct", refund("a", 5), false}, Enqueued{1, true}, nil},
		{Item{"acct", refund("a", 5), false}, Enqueued{1, false}, nil},
		{Item{"acct", update, false}, Enqueued{2, true}, nil},
		{Item{"acct", update, false}, Enqueued{2, false}, nil},
		{Item{"acct", refund("a", 6), false}, Enqueued{}, ErrAmountChanged},
		{Item{"acct", &refunds.Refund{RefundID: "a", Currency: "EUR"}, false}, Enqueued{}, ErrAmountChanged},
		{Item{"acct", refund("a", 6), true}, Enqueued{3, true}, nil},
		{Item{"other", refund("a", 7), false}, Enqueued{4, true}, nil},
		{Item{"acct", &refunds.Refund{RefundID: " "}, false}, Enqueued{}, refunds.ErrInvalidArgument},
		{Item{"acct", nil, false}, Enqueued{}, refunds.ErrInvalidArgument},
		{Item{"..", refund("b", 7), false}, Enqueued{}, refunds.ErrInvalidArgument},
		{Item{"acct", refund(strings.Repeat("b", 513), 7), false}, Enqueued{}, refunds.ErrInvalidArgument},
		{Item{"acct", refund("b\x00", 7), false}, Enqueued{}, refunds.ErrInvalidArgument},
	} {
		if got, err := s.place(test.item); got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%d: %+v, %v", i, got, err)
		}
	}
	s.set(`UPDATE outbox_refund SET state = 'rejected' WHERE account = 'acct'`)
	if e, err := s.place(Item{"acct", refund("a", 9), false}); err != nil || !e.New {
		t.Errorf("a correction: %+v, %v", e, err)
	}
	// What was corrected is not listed as rejected, and not sent again beside the correction.
	rejected, err := s.box.List(t.Context(), Filter{States: []State{Rejected}})
	corrected, _ := s.box.List(t.Context(), Filter{Rows: []int64{1, 3}})
	n, again := s.box.Decide(t.Context(), corrected, Resubmit, "ann", "")
	if len(rejected) != 0 || err != nil || len(corrected) != 2 || n != 0 || !errors.Is(again, ErrState) {
		t.Errorf("%+v, %v; %+v, %d, %v", rejected, err, corrected, n, again)
	}
	s.check("rejected rejected rejected pending pending")
	if n := s.column(`SELECT CAST(COUNT(*) AS TEXT) FROM river_job`); n != "5" {
		t.Errorf("%s jobs", n)
	}
}

// TestEnqueueWaits: a transaction that the application began without _txlock=immediate
// waits for another writer, as the others do.
func TestEnqueueWaits(t *testing.T) {
	file := newFile(t)
	box, own, err := openFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(30000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first, err := own.BeginTx(t.Context(), nil)
	if err == nil {
		_, err = first.Exec(`CREATE TABLE other (id INTEGER)`)
	}
	if err != nil {
		t.Fatal(err)
	}
	second, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Rollback()
	enqueued := make(chan error)
	go func() {
		_, err := box.Enqueue(t.Context(), second, Item{AccountID: "acct", Refund: refund("a", 5)})
		enqueued <- err
	}()
	if err := first.Commit(); err != nil {
		t.Error(err)
	}
	if err := <-enqueued; err != nil {
		t.Error(err)
	}
}

// TestNotMigrated: without the tables, everything says so.
func TestNotMigrated(t *testing.T) {
	box, db, err := openFile(t.TempDir() + "/empty.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := serve(t, box)
	_, placed := s.place(Item{AccountID: "acct", Refund: refund("a", 5)})
	_, listed := box.List(t.Context(), Filter{})
	_, status := box.Status(t.Context())
	for _, err := range []error{placed, listed, status, box.Run(t.Context(), s.w.Config)} {
		if !errors.Is(err, ErrTables) {
			t.Error(err)
		}
	}
}

// TestNoAnswer: a database that does not answer is no reason to migrate.
func TestNoAnswer(t *testing.T) {
	file := newFile(t)
	db, err := sql.Open("sqlite", "file:"+file) // which waits for no lock
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	box, err := OpenSQLite(db)
	if err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := box.Status(canceled); !errors.Is(err, context.Canceled) || errors.Is(err, ErrTables) {
		t.Errorf("canceled: %v", err)
	}
	other, err := sql.Open("sqlite", "file:"+file+"?_pragma=locking_mode(EXCLUSIVE)")
	if err == nil {
		defer other.Close()
		_, err = other.Exec(`CREATE TABLE other (id INTEGER)`) // which takes the lock
	}
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, box)
	_, status := box.Status(t.Context())
	_, placed := s.place(Item{AccountID: "acct", Refund: refund("a", 5)})
	for _, err := range []error{status, placed, box.Run(t.Context(), s.w.Config)} {
		if err == nil || !strings.Contains(err.Error(), "locked") || errors.Is(err, ErrTables) {
			t.Errorf("locked: %v", err)
		}
	}
}

// TestSettings: a file that can lose commits is not worked.
func TestSettings(t *testing.T) {
	s := newSystem(t)
	s.set(`PRAGMA synchronous = NORMAL`)
	if err := s.box.Run(t.Context(), s.w.Config); err == nil || !strings.Contains(err.Error(), "synchronous") {
		t.Error(err)
	}
}
