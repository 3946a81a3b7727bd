package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

const demoUsage = `usage: outbox demo [-dir DIR]

Books made-up refunds in a SQLite file, of which some transactions are rolled back,
and works them against a sandbox that rejects some, answers 503 for others, and
breaks connections before and after it recorded the refund. It kills its worker
with SIGKILL and starts it again, three times, and then compares what it knows with
what the sandbox recorded. DATABASE_URL is not used.

  -dir DIR   where the database goes; a temporary directory

Exit code: 0 no refund was lost, made up or doubled; 1 failed; 2 usage.
`

const (
	demoRefunds     = 2_000
	demoTransaction = 5 // refunds that are booked together
	demoKills       = 3
	demoAccount     = "sandbox"
)

// A demonstration is a run of the demo.
type demonstration struct {
	p      *process
	db     database
	file   string
	engine *sandbox.Engine
	url    string
	random *rand.Rand
}

func (p *process) demo(ctx context.Context, args []string) (int, error) {
	flags := flag.NewFlagSet("outbox demo", flag.ContinueOnError)
	dir := flags.String("dir", "", "")
	if code, ok := p.parse(flags, demoUsage, args); !ok {
		return code, nil
	}
	if flags.NArg() > 0 {
		return 0, target.Usage("outbox: demo takes no arguments besides -dir (-h helps)")
	}
	if *dir == "" {
		made, err := os.MkdirTemp("", "carddata-outbox-")
		if err != nil {
			return 0, err
		}
		*dir = made
	}
	file := filepath.Join(*dir, defaultFile)
	if _, err := os.Stat(file); err == nil {
		return 0, target.Usage("outbox: %s exists: the demo wants a database of its own", file)
	}
	db, err := openSQLite(ctx, file)
	if err != nil {
		return 0, err
	}
	defer db.close()
	engine := sandbox.New()
	engine.Retain(10 * demoRefunds)
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer server.Close()
	fmt.Fprintf(p.stderr, "sandbox %s, database %s\n", server.URL(), target.Line(file))

	d := &demonstration{p, db, file, engine, server.URL(), rand.New(rand.NewPCG(1, 2))}
	if err := d.book(ctx); err != nil {
		return 0, err
	}
	if err := d.work(ctx); err != nil {
		return 0, err
	}
	return d.report(ctx)
}

// book books refunds: each in one transaction with the business row that it is
// for, here a booking.
func (d *demonstration) book(ctx context.Context) error {
	_, err := d.db.exec(ctx, `CREATE TABLE demo_booking (refund_id TEXT PRIMARY KEY, order_id TEXT NOT NULL)`)
	if err != nil {
		return err
	}
	errRolledBack := fmt.Errorf("the order could not be changed")
	for first := 1; first <= demoRefunds; first += demoTransaction {
		err := d.db.transact(ctx, func(tx transaction) error {
			var records []*refunds.Refund
			for n := first; n < first+demoTransaction; n++ {
				r := demoRefund(n)
				records = append(records, r)
				if _, err := tx.exec(ctx, `INSERT INTO demo_booking (refund_id, order_id) VALUES ($1, $2)`,
					r.RefundID, r.AdditionalData.OrderID); err != nil {
					return err
				}
			}
			if _, err := store(ctx, tx, demoAccount, records, false); err != nil {
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

func demoRefund(n int) *refunds.Refund {
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
func (d *demonstration) fault() sandbox.Fault {
	refusal := func(status int, code string) sandbox.Fault {
		return sandbox.Fault{Status: status, Body: `{"error":{"code":"` + code + `","message":"refused","details":{}}}`}
	}
	switch n := d.random.IntN(1000); {
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
	for range 2 * demoRefunds {
		d.engine.Script(sandbox.Refunds, d.fault())
	}
	for kill := 1; kill <= demoKills; kill++ {
		cmd, ended, err := d.start(ctx)
		if err != nil {
			return err
		}
		enough := kill * demoRefunds / (demoKills + 2)
		for d.engine.RequestCount(sandbox.Refunds) < enough {
			select {
			case err := <-ended:
				return fmt.Errorf("the worker ended by itself: %v", err)
			case <-time.After(time.Millisecond):
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			return err
		}
		<-ended
		fmt.Fprintf(d.p.stderr, "killed the worker after %s requests\n", grouped(d.engine.RequestCount(sandbox.Refunds)))
	}
	_, ended, err := d.start(ctx)
	if err != nil {
		return err
	}
	return <-ended
}

// start starts a worker, in a process of its own.
func (d *demonstration) start(ctx context.Context) (*exec.Cmd, <-chan error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, self, "work", "-drain", "-db", d.file)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CARDDATA_") && !strings.HasPrefix(variable, "DATABASE_URL=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, settings.URL+"="+d.url)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, stderr.Bytes())
		}
		ended <- err
	}()
	return cmd, ended, nil
}
