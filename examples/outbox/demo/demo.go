// Package demo shows the outbox with a sandbox in place of the service. Nothing of
// it is to be copied.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// Usage is the help text.
const Usage = `[-db FILE]

Books made-up refunds in a new SQLite file, of which some transactions are rolled
back, and works them against a sandbox that rejects some, answers 503 for others, and
breaks connections before and after it recorded the refund. It kills its worker
with SIGKILL and starts it again, three times. Then it settles what is unknown by
two reports of the sandbox, and what is unknown after that by a lookup, which the
service does not have. At the end it compares what it knows with what the sandbox
recorded. Without -db, the file is removed at the end. DATABASE_URL is not used.

Exit code 1: a refund was lost, made up or doubled, or the demo failed.
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
	file, url      string
	engine         *sandbox.Engine
}

// Run runs the demo. It fails if a refund was lost, made up or doubled.
func Run(ctx context.Context, stdout, stderr io.Writer, file string) error {
	kept := file != ""
	if !kept {
		dir, err := os.MkdirTemp("", "carddata-outbox-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		file = filepath.Join(dir, "outbox.db")
	} else if _, err := os.Stat(file); err == nil {
		return target.Usage("outbox: %s exists: the demo wants a database of its own", target.Path(file))
	}
	db, err := refundoutbox.OpenSQLite(ctx, file)
	if err != nil {
		return err
	}
	defer db.Close()
	engine := sandbox.New()
	engine.Retain(10 * booked)
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	fmt.Fprintf(stderr, "sandbox %s, database %s\n", server.URL(), target.Path(file))
	d := &demonstration{stdout, stderr, db, file, server.URL(), engine}
	for _, step := range []func(context.Context) error{db.Migrate, d.book, d.work, d.settle, d.ask, d.compare} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if kept {
		fmt.Fprintf(stdout, "\nlook around: outbox status -db %s\n", target.Path(file))
	}
	return nil
}

// book books refunds: each in one transaction with the business row that it is
// for, here a booking.
func (d *demonstration) book(ctx context.Context) error {
	if _, err := d.db.Exec(ctx, `CREATE TABLE demo_booking (refund_id TEXT PRIMARY KEY)`); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	errRolledBack := errors.New("the order could not be changed")
	for first := 1; first <= booked; first += transaction {
		err := d.db.Transact(ctx, func(tx refundoutbox.Tx) error {
			var records []*refunds.Refund
			for n := first; n < first+transaction; n++ {
				r := &refunds.Refund{
					RefundID: fmt.Sprintf("rf_%05d", n),
					Amount:   new(int64(100 + n*37%20_000)),
					Currency: "EUR",
					Created:  time.Now().UTC().Format(time.RFC3339),
				}
				records = append(records, r)
				if _, err := tx.Exec(ctx, `INSERT INTO demo_booking (refund_id) VALUES ($1)`, r.RefundID); err != nil {
					return err
				}
			}
			if _, err := refundoutbox.Enqueue(ctx, tx, account, records, false); err != nil {
				return err
			}
			if random.IntN(10) == 0 {
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

// faults are what befalls so many of 1,000 requests.
var faults = []struct {
	requests int
	fault    sandbox.Fault
}{
	{50, sandbox.Fault{DropBefore: true}},
	{50, sandbox.Fault{DropAfter: true}},
	{10, sandbox.Fault{Status: 503}},
	{10, sandbox.Fault{Status: 503, Process: true}},
	{20, sandbox.Fault{Status: 422, Body: `{"error":{"code":"amount_too_high","message":"refused","details":{}}}`}},
	{10, sandbox.Fault{Status: 400, Body: `{"error":{"code":"transaction_not_found","message":"refused","details":{}}}`}},
	{1, sandbox.Fault{Status: 429, RetryAfter: time.Second}},
}

func fault(sandbox.Request) sandbox.Fault {
	n := rand.IntN(1000)
	for _, f := range faults {
		if n -= f.requests; n < 0 {
			return f.fault
		}
	}
	return sandbox.Fault{}
}

// work runs workers, and kills all but the last when a share of the requests has
// arrived at the sandbox.
func (d *demonstration) work(ctx context.Context) error {
	d.engine.ScriptFunc(sandbox.Refunds, fault)
	for kill := 1; kill <= kills; kill++ {
		enough := kill * booked / (kills + 2)
		killing, end := context.WithCancel(ctx)
		go func() {
			for ; killing.Err() == nil && d.engine.RequestCount(sandbox.Refunds) < enough; time.Sleep(time.Millisecond) {
			}
			end() // which kills it
		}()
		err := d.outbox(killing, "work")
		if end(); d.engine.RequestCount(sandbox.Refunds) < enough {
			return fmt.Errorf("the worker ended by itself: %w", err)
		}
		fmt.Fprintf(d.stderr, "killed the worker after %d requests\n", d.engine.RequestCount(sandbox.Refunds))
	}
	if err := d.age(ctx); err != nil {
		return err
	}
	return d.outbox(ctx, "work", "-drain")
}

// outbox runs a command of this program, against the sandbox.
func (d *demonstration) outbox(ctx context.Context, command string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{command, "-db", d.file}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "CARDDATA_") || strings.HasPrefix(variable, "DATABASE_URL=")
	})
	cmd.Env = append(cmd.Env, "CARDDATA_REFUND_URL="+d.url)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("outbox %s: %w: %s", command, err, said)
	}
	return nil
}

// settle does what an operator does with outbox resolve -import. A first report, in
// which every 300th amount is wrong, says which of the unknown refunds the sandbox
// has. A second one corrects it, and confirms what the sandbox does not have, which is
// then sent again.
func (d *demonstration) settle(ctx context.Context) error {
	for i, wrong := range []int{300, booked} {
		if err := d.age(ctx); err != nil {
			return err
		}
		report := &refundoutbox.Report{ID: fmt.Sprint(i + 1), Until: time.Now(), Resubmit: i > 0}
		for n, r := range d.recorded() {
			if n%wrong == wrong-1 {
				*r.Amount++
			}
			report.Rows = append(report.Rows, refundoutbox.ReportRow{Line: n + 1, Account: account, RefundID: r.RefundID, Amount: r.Amount, Currency: r.Currency})
		}
		plan, err := refundoutbox.Compare(ctx, d.db, report)
		if err != nil {
			return err
		}
		fmt.Fprintf(d.stdout, "report %s of the sandbox: %d become accepted, %d absent, %d are sent again; %d differences\n",
			report.ID, plan.Found, plan.NotFound, plan.SendAgain, len(plan.Differences))
		if _, err := plan.Apply(ctx, d.db, refundoutbox.Decision{Who: "demo"}); err != nil {
			return err
		}
	}
	return d.outbox(ctx, "work", "-drain")
}

// age sets the time of the requests back: nothing is concluded about those of the last
// two minutes, and the demo does not wait.
func (d *demonstration) age(ctx context.Context) error {
	_, err := d.db.Exec(ctx, `UPDATE outbox_refund SET first_sent_at = $1, sent_at = $1 WHERE sent_at <> ''`,
		time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15:04:05.000Z"))
	return err
}

// recorded returns what the sandbox has recorded.
func (d *demonstration) recorded() (all []refunds.Refund) {
	for _, recorded := range d.engine.Refunds() {
		var r refunds.Refund
		json.Unmarshal(recorded.Body, &r) // it was checked there
		all = append(all, r)
	}
	return all
}

// ask settles what is still unknown by a lookup in what the sandbox has recorded. Its
// path says that the service has no such endpoint.
func (d *demonstration) ask(ctx context.Context) error {
	const path = "/not-the-service/refunds"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := map[string]any{"found": false}
		for _, refund := range d.recorded() {
			if r.URL.Path == path+"/"+account+"/"+refund.RefundID {
				said = map[string]any{"found": true, "amount": refund.Amount, "currency": refund.Currency}
			}
		}
		json.NewEncoder(w).Encode(said)
	}))
	defer server.Close()
	if err := d.age(ctx); err != nil {
		return err
	}
	return d.outbox(ctx, "work", "-drain", "-lookup", server.URL+path)
}

// compare compares the bookings and the outbox with the sandbox's record.
func (d *demonstration) compare(ctx context.Context) error {
	s, err := refundoutbox.Summarize(ctx, d.db)
	if err != nil {
		return err
	}
	times := make(map[string]int)
	for _, refund := range d.recorded() {
		times[refund.RefundID]++
	}
	var bookings []struct {
		RefundID string
		State    refundoutbox.State
	}
	err = d.db.Select(ctx, &bookings, `SELECT b.refund_id, COALESCE(r.state, '') AS state
		FROM demo_booking AS b LEFT JOIN outbox_refund AS r ON r.refund_id = b.refund_id`)
	var lost, doubled, wrong int
	for _, b := range bookings {
		n := times[b.RefundID]
		delete(times, b.RefundID)
		doubled += max(0, n-1)
		switch {
		case b.State == refundoutbox.Unknown, b.State == refundoutbox.Absent:
		case b.State == refundoutbox.Accepted && n == 0, b.State == "":
			lost++
		case b.State != refundoutbox.Accepted && n > 0:
			wrong++
		}
	}
	fmt.Fprintf(d.stdout, `
what became of them
enqueued %5d  of %d; %d were rolled back with their bookings
killed   %5d  times, with SIGKILL
accepted %5d
rejected %5d
unknown  %5d  the service may have them, or not
absent   %5d  the sandbox does not have them: a third report would send them again
ghosts   %5d  recorded by the sandbox, and never booked
lost     %5d  booked, and not in the outbox, or accepted there and not recorded
doubled  %5d  recorded by the sandbox more than once
wrong    %5d  recorded by the sandbox, and rejected here
`, s.Enqueued, booked, booked-s.Enqueued, kills, s.Accepted, s.Rejected, s.Unknown, s.Absent, len(times), lost, doubled, wrong)
	if err == nil && len(times)+lost+doubled+wrong > 0 {
		err = errors.New("outbox: a refund was lost, made up or doubled")
	}
	return err
}
