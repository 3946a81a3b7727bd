// Package demo shows the outbox with a sandbox in place of the service: it runs the
// commands as an operator does. Nothing of it is to be copied.
package demo

import (
	"cmp"
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
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// Usage is the help text.
const Usage = `Works made-up refunds in a new SQLite file against a sandbox with faults, kills its
worker three times, and settles what is unknown by two reports of the sandbox, and the
rest by a lookup, which the service does not have. At the end it compares what it knows
with what the sandbox recorded. Without -db, the file is removed. DATABASE_URL is not used.

Exit code 1: a refund was lost, made up or doubled, or the demo failed.`

const (
	enqueued = 2_000
	kills    = 3
	account  = "sandbox"
)

// A demonstration is a run of the demo.
type demonstration struct {
	stdout, stderr io.Writer
	db             *refundoutbox.Database
	dir, file, url string
	engine         *sandbox.Engine
}

// Run runs the demo. It fails if a refund was lost, made up or doubled.
func Run(ctx context.Context, stdout, stderr io.Writer, file string) error {
	if _, err := os.Stat(file); file != "" && err == nil {
		return target.Usage("outbox: %s exists: the demo wants a database of its own", target.Path(file))
	}
	dir, err := os.MkdirTemp("", "carddata-outbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	engine := sandbox.New()
	engine.Retain(10 * enqueued)
	engine.ScriptFunc(sandbox.Refunds, fault)
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	d := &demonstration{stdout: stdout, stderr: stderr, dir: dir, file: cmp.Or(file, filepath.Join(dir, "outbox.db")), url: server.URL(), engine: engine}
	fmt.Fprintf(stderr, "sandbox %s, database %s\n", d.url, target.Path(d.file))
	if err := d.enqueue(ctx); err != nil {
		return err
	}
	if d.db, err = refundoutbox.OpenSQLite(ctx, d.file); err != nil {
		return err
	}
	defer d.db.Close()
	for _, step := range []func(context.Context) error{d.work, d.settle, d.ask, d.compare} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if file != "" {
		fmt.Fprintf(stdout, "\nlook around: outbox status -db %s\n", target.Path(file))
	}
	return nil
}

// outbox runs a command of this program against the sandbox, and returns what it said.
func (d *demonstration) outbox(ctx context.Context, command string, args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{command, "-db", d.file}, args...)...)
	cmd.Env = []string{"CARDDATA_REFUND_URL=" + d.url}
	said, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != 3 { // which is: something is to be looked at
		return "", fmt.Errorf("outbox %s: %w: %s", command, err, said)
	}
	return string(said), nil
}

// write writes lines to a file in the demo's directory, and returns its name.
func (d *demonstration) write(name string, lines []string) (string, error) {
	name = filepath.Join(d.dir, name)
	return name, os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o600)
}

func (d *demonstration) enqueue(ctx context.Context) error {
	lines := []string{"refund_id,amount,currency"}
	for n := range enqueued {
		lines = append(lines, fmt.Sprintf("rf_%05d,%d,EUR", n, 100+n*37%20_000))
	}
	in, err := d.write("refunds.csv", lines)
	if err == nil {
		_, err = d.outbox(ctx, "enqueue", "-in", in, "-account", account)
	}
	return err
}

// fault is what befalls some of the requests.
func fault(sandbox.Request) sandbox.Fault {
	switch n := rand.IntN(1000); {
	case n < 50:
		return sandbox.Fault{DropBefore: true}
	case n < 100:
		return sandbox.Fault{DropAfter: true}
	case n < 120:
		return sandbox.Fault{Status: 503, Process: n < 110}
	case n < 150:
		return sandbox.Fault{Status: 422, Body: `{"error":{"code":"amount_too_high","message":"refused","details":{}}}`}
	}
	return sandbox.Fault{}
}

// work runs workers, and kills all but the last when a share of the requests has
// arrived at the sandbox.
func (d *demonstration) work(ctx context.Context) error {
	arrived := func() int { return d.engine.RequestCount(sandbox.Refunds) }
	for kill := 1; kill <= kills; kill++ {
		enough := kill * enqueued / (kills + 2)
		killing, end := context.WithCancel(ctx)
		go func() {
			for ; killing.Err() == nil && arrived() < enough; time.Sleep(time.Millisecond) {
			}
			end() // which kills it
		}()
		_, err := d.outbox(killing, "work")
		if end(); arrived() < enough {
			return fmt.Errorf("the worker ended by itself: %w", err)
		}
		fmt.Fprintf(d.stderr, "killed the worker after %d requests\n", arrived())
	}
	return d.drain(ctx)
}

// drain sends what can be sent.
func (d *demonstration) drain(ctx context.Context, flags ...string) error {
	err := d.age(ctx)
	if err == nil {
		_, err = d.outbox(ctx, "work", append(flags, "-drain")...)
	}
	return err
}

// age sets the time of the requests back: nothing is concluded about them for some
// minutes, and the demo does not wait.
func (d *demonstration) age(ctx context.Context) error {
	_, err := d.db.Exec(ctx, `UPDATE outbox_refund SET first_sent_at = $1, sent_at = $1 WHERE sent_at <> ''`,
		time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15:04:05.000Z"))
	return err
}

// settle imports two reports. The first, in which every 250th amount is wrong, says
// which of the unknown refunds the sandbox has. The second corrects it, and confirms what
// the sandbox does not have, which is then sent again.
func (d *demonstration) settle(ctx context.Context) error {
	for i, flags := range [][]string{{}, {"-resubmit"}} {
		if err := d.age(ctx); err != nil {
			return err
		}
		lines := []string{"account,refund_id,amount,currency"}
		for n, r := range d.recorded() {
			if i == 0 && n%250 == 249 {
				*r.Amount++
			}
			lines = append(lines, fmt.Sprintf("%s,%s,%d,%s", account, r.RefundID, *r.Amount, r.Currency))
		}
		report, err := d.write("report.csv", lines)
		if err != nil {
			return err
		}
		flags = append(flags, "-import", report, "-complete-until", time.Now().UTC().Format(time.RFC3339Nano), "-by", "demo")
		preview, err := d.outbox(ctx, "resolve", flags...)
		if err != nil {
			return err
		}
		fmt.Fprintf(d.stdout, "report %d of the sandbox\n%s\n", i+1, preview)
		_, token, _ := strings.Cut(preview, "-expect ")
		token, _, _ = strings.Cut(token, "\n")
		if _, err := d.outbox(ctx, "resolve", append(flags, "-expect", token)...); err != nil {
			return err
		}
	}
	return d.drain(ctx)
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
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := map[string]any{"found": false}
		for _, refund := range d.recorded() {
			if path.Base(r.URL.Path) == refund.RefundID {
				said = map[string]any{"found": true, "amount": refund.Amount, "currency": refund.Currency}
			}
		}
		json.NewEncoder(w).Encode(said)
	}))
	defer server.Close()
	return d.drain(ctx, "-lookup", server.URL+"/not-the-service/refunds")
}

// compare compares the outbox with the sandbox's record.
func (d *demonstration) compare(ctx context.Context) error {
	var known []struct {
		RefundID string
		State    refundoutbox.State
	}
	if err := d.db.Select(ctx, &known, `SELECT refund_id, state FROM outbox_refund`); err != nil {
		return err
	}
	times := make(map[string]int)
	for _, r := range d.recorded() {
		times[r.RefundID]++
	}
	states := make(map[refundoutbox.State]int)
	lost, doubled, wrong := enqueued-len(known), 0, 0
	for _, r := range known {
		states[r.State]++
		n := times[r.RefundID]
		delete(times, r.RefundID)
		doubled += max(0, n-1)
		switch {
		case r.State == refundoutbox.Accepted && n == 0:
			lost++
		case r.State == refundoutbox.Rejected && n > 0:
			wrong++
		}
	}
	fmt.Fprintf(d.stdout, `what became of them
enqueued %5d
killed   %5d  times, with SIGKILL
accepted %5d
rejected %5d
unknown  %5d  the service may have them, or not
absent   %5d  the sandbox does not have them: a third report would send them again
ghosts   %5d  recorded by the sandbox, and never enqueued
lost     %5d  enqueued, and not in the outbox, or accepted there and not recorded
doubled  %5d  recorded by the sandbox more than once
wrong    %5d  recorded by the sandbox, and rejected here
`, len(known), kills, states[refundoutbox.Accepted], states[refundoutbox.Rejected], states[refundoutbox.Unknown],
		states[refundoutbox.Absent], len(times), lost, doubled, wrong)
	if len(times)+lost+doubled+wrong > 0 {
		return errors.New("outbox: a refund was lost, made up or doubled")
	}
	return nil
}
