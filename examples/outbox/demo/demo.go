// Package demo shows the outbox with a sandbox in place of the service. Nothing of
// it is to be copied.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/examples/outbox/table"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// Usage is the help text.
const Usage = `[-dir DIR]

Books made-up refunds in a SQLite file, of which some transactions are rolled back,
and works them against a sandbox that rejects some, answers 503 for others, and
breaks connections before and after it recorded the refund. It kills its worker
with SIGKILL and starts it again, three times. Then it settles what is unknown by
two reports of the sandbox, and what is unknown after that by a lookup, which the
service does not have. At the end it compares what it knows with what the sandbox
recorded. DATABASE_URL is not used.

Exit code: 0 no refund was lost, made up or doubled; 1 failed; 2 usage.
`

const (
	booked      = 2_000
	transaction = 5 // refunds that are booked together
	kills       = 3
	account     = "sandbox"
)

// A demonstration is a run of the demo.
type demonstration struct {
	stdout, stderr io.Writer
	db             *refundoutbox.Database
	dir, file      string
	engine         *sandbox.Engine
	url            string
	random         *rand.Rand
}

// Run runs the demo. It fails if a refund was lost, made up or doubled.
func Run(ctx context.Context, stdout, stderr io.Writer, dir string) (err error) {
	kept := dir != ""
	if !kept {
		if dir, err = os.MkdirTemp("", "carddata-outbox-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	file, err := filepath.Abs(filepath.Join(dir, "outbox.db")) // go -C runs elsewhere
	if err != nil {
		return err
	}
	if _, err := os.Stat(file); err == nil {
		return target.Usage("outbox: %s exists: the demo wants a database of its own", target.Path(file))
	}
	db, err := refundoutbox.OpenSQLite(ctx, file)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	engine := sandbox.New()
	engine.Retain(10 * booked)
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	fmt.Fprintf(stderr, "sandbox %s, database %s\n", server.URL(), target.Path(file))
	d := &demonstration{stdout, stderr, db, dir, file, engine, server.URL(), rand.New(rand.NewPCG(1, 2))}
	for _, step := range []func(context.Context) error{d.book, d.work, d.settle, d.ask, d.compare} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if kept {
		fmt.Fprintf(stdout, "\nlook around: go -C examples/outbox run . status -db %s\n", target.Path(file))
	}
	return nil
}

// book books refunds: each in one transaction with the business row that it is
// for, here a booking.
func (d *demonstration) book(ctx context.Context) error {
	if _, err := d.db.Exec(ctx, `CREATE TABLE demo_booking (refund_id TEXT PRIMARY KEY, order_id TEXT NOT NULL)`); err != nil {
		return err
	}
	errRolledBack := errors.New("the order could not be changed")
	for first := 1; first <= booked; first += transaction {
		err := d.db.Transact(ctx, func(tx refundoutbox.Tx) error {
			var records []*refunds.Refund
			for n := first; n < first+transaction; n++ {
				r := refund(n)
				records = append(records, r)
				if _, err := tx.Exec(ctx, `INSERT INTO demo_booking (refund_id, order_id) VALUES ($1, $2)`,
					r.RefundID, r.AdditionalData.OrderID); err != nil {
					return err
				}
			}
			if _, err := refundoutbox.Enqueue(ctx, tx, account, records, false); err != nil {
				return err
			}
			if d.random.IntN(10) == 0 {
				return errRolledBack
			}
			return nil
		})
		if err != nil && err != errRolledBack {
			return err
		}
	}
	return nil
}

func refund(n int) *refunds.Refund {
	r := &refunds.Refund{
		RefundID:      fmt.Sprintf("rf_%05d", n),
		Amount:        new(int64(100 + n*37%20_000)),
		Currency:      "EUR",
		Created:       time.Now().UTC().Format(time.RFC3339),
		TransactionID: fmt.Sprintf("tx_%05d", n),
	}
	r.AdditionalData.OrderID = fmt.Sprintf("order_%05d", n)
	r.PaymentMethodDetails.Card.Attributes.BIN = "411111"
	return r
}

// fault says what befalls a request.
func (d *demonstration) fault(n int) sandbox.Fault {
	refusal := func(status int, code string) sandbox.Fault {
		return sandbox.Fault{Status: status, Body: `{"error":{"code":"` + code + `","message":"refused","details":{}}}`}
	}
	switch {
	case n < 50:
		return sandbox.Fault{DropBefore: true}
	case n < 100:
		return sandbox.Fault{DropAfter: true}
	case n < 110:
		return sandbox.Fault{Status: 503}
	case n < 120:
		return sandbox.Fault{Status: 503, Process: true}
	case n < 140:
		return refusal(422, "amount_too_high")
	case n < 150:
		return refusal(400, "transaction_not_found")
	case n < 151:
		return sandbox.Fault{Status: 429, RetryAfter: time.Second}
	}
	return sandbox.Fault{}
}

// work runs workers, and kills all but the last when a share of the requests has
// arrived at the sandbox.
func (d *demonstration) work(ctx context.Context) error {
	for range 2 * booked {
		d.engine.Script(sandbox.Refunds, d.fault(d.random.IntN(1000)))
	}
	for kill := 1; kill <= kills; kill++ {
		enough := kill * booked / (kills + 2)
		killing, end := context.WithCancel(ctx)
		go func() {
			for ; killing.Err() == nil && d.engine.RequestCount(sandbox.Refunds) < enough; time.Sleep(time.Millisecond) {
			}
			end() // which kills it
		}()
		_, err := d.outbox(killing, "work")
		if end(); d.engine.RequestCount(sandbox.Refunds) < enough {
			return fmt.Errorf("the worker ended by itself: %w", err)
		}
		fmt.Fprintf(d.stderr, "killed the worker after %s requests\n", table.Number(d.engine.RequestCount(sandbox.Refunds)))
	}
	_, err := d.outbox(ctx, "work", "-drain")
	return err
}

// outbox runs a command of this program, against the sandbox, and returns what it
// says.
func (d *demonstration) outbox(ctx context.Context, command string, args ...string) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{command, "-db", d.file}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "CARDDATA_") || strings.HasPrefix(variable, "DATABASE_URL=")
	})
	cmd.Env = append(cmd.Env, "CARDDATA_REFUND_URL="+d.url)
	said, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if exit.ExitCode() == 3 { // something is to be looked at
			return said, nil
		}
		err = fmt.Errorf("outbox %s: %w: %s", command, err, exit.Stderr)
	}
	return said, err
}
