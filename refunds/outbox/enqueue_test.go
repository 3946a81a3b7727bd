package outbox

import (
	"database/sql"
	"errors"
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
		{Item{"acct", refund("a", 5), false}, Enqueued{Row: 1, New: true}, nil},
		{Item{"acct", refund("a", 5), false}, Enqueued{Row: 1, New: false}, nil},
		{Item{"acct", update, false}, Enqueued{Row: 2, New: true}, nil},
		{Item{"acct", update, false}, Enqueued{Row: 2, New: false}, nil},
		{Item{"acct", refund("a", 6), false}, Enqueued{Row: 2}, ErrAmountChanged},
		{Item{"acct", &refunds.Refund{RefundID: "a", Currency: "EUR"}, false}, Enqueued{Row: 2}, ErrAmountChanged},
		{Item{"acct", &refunds.Refund{RefundID: "a", Amount: new(int64(5)), Currency: "USD"}, false}, Enqueued{Row: 2}, ErrAmountChanged},
		{Item{"acct", refund("a", 6), true}, Enqueued{Row: 3, New: true}, nil},
		{Item{"other", refund("a", 7), false}, Enqueued{Row: 4, New: true}, nil},
		{Item{"acct", &refunds.Refund{}, false}, Enqueued{}, refunds.ErrInvalidArgument},
		{Item{"acct", nil, false}, Enqueued{}, refunds.ErrInvalidArgument},
		{Item{"..", refund("b", 7), false}, Enqueued{}, refunds.ErrInvalidArgument},
	} {
		if got, err := s.place(test.item); got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%d: %+v, %v", i, got, err)
		}
	}
	s.set(`UPDATE outbox_refund SET state = 'rejected' WHERE account = 'acct'`)
	if e, err := s.place(Item{"acct", refund("a", 9), false}); err != nil || !e.New {
		t.Errorf("a correction: %+v, %v", e, err)
	}
	// What was corrected is not sent again behind the correction.
	corrected, err := s.box.List(t.Context(), Rejected)
	n, again := s.box.Decide(t.Context(), corrected, Resubmit, "ann", "")
	if len(corrected) != 3 || err != nil || n != 0 || !errors.Is(again, ErrState) {
		t.Errorf("%+v, %v; %d, %v", corrected, err, n, again)
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
