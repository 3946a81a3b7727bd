package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/outbox"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// handleRefund sends one refund for each Idempotency-Key, however often and wherever it is called.
func handleRefund(box *outbox.Outbox, client *refunds.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var order struct{ Amount int64 }
		if json.NewDecoder(r.Body).Decode(&order) != nil {
			http.Error(w, "not JSON", http.StatusBadRequest)
			return
		}
		refund := &refunds.Refund{RefundID: r.Header.Get("Idempotency-Key"), Amount: &order.Amount, Currency: "USD"}
		ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second) // of the wait, not of the refund
		defer cancel()
		entry, err := box.Submit(ctx, client, outbox.Item{AccountID: "acct_7", Refund: refund})
		status := http.StatusAccepted // pending, sending, unknown: repeat the request
		switch {
		case errors.Is(err, outbox.ErrAmountChanged):
			status = http.StatusConflict // the key is of another refund
		case errors.Is(err, refunds.ErrInvalidArgument):
			status = http.StatusBadRequest
		case err != nil:
			status = http.StatusServiceUnavailable // the database: repeat the request
		case entry.State == outbox.Accepted:
			status = http.StatusCreated
		case entry.State == outbox.Rejected:
			status = http.StatusUnprocessableEntity
		}
		w.WriteHeader(status)
	}
}

// An HTTP handler, whose callers may repeat requests and leave early.
func ExampleOutbox_Submit() {
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
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "refunds.db")+settings)
	check(err)
	defer db.Close()
	box, err := outbox.OpenSQLite(db)
	check(err)
	check(box.Migrate(ctx))               // when you deploy
	service := refundstest.NewServer(nil) // stands in for the service
	defer service.Close()
	service.Script(refundstest.Fault{}, refundstest.Fault{Status: 422}, refundstest.Fault{Drop: true, Process: true})
	handler := handleRefund(box, service.Client())
	for _, call := range []string{"rf_1 500", "rf_1 500", "rf_1 600", "rf_2 700", "rf_2 700", "rf_3 800", "rf_3 800"} {
		key, amount, _ := strings.Cut(call, " ")
		r := httptest.NewRequest("POST", "/refunds", strings.NewReader(`{"amount":`+amount+`}`))
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		handler(w, r)
		fmt.Println(call, w.Code)
	}
	check(box.Close(ctx)) // at the end of the process
	fmt.Println("sent:", len(service.Requests()))
	// Output:
	// rf_1 500 201
	// rf_1 500 201
	// rf_1 600 409
	// rf_2 700 422
	// rf_2 700 422
	// rf_3 800 202
	// rf_3 800 202
	// sent: 3
}
