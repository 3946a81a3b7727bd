package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/outbox"
)

const demoUsage = `Works made-up refunds in a new SQLite file against a sandbox that breaks some connections,
kills the worker three times, and settles what is unknown by two reports of the sandbox. A
third report shows that none was lost or doubled: there are no differences.`

const demoRefunds, demoKills = 2_000, 3

func (c *command) demo(ctx context.Context, args []string) error {
	if err := c.parse(demoUsage, args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "carddata-outbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c.file = filepath.Join(dir, "outbox.db")
	engine := sandbox.New()
	engine.Retain(10 * demoRefunds)
	engine.ScriptFunc(sandbox.Refunds, func(sandbox.Request) sandbox.Fault {
		switch n := rand.IntN(1000); {
		case n < 25:
			return sandbox.Fault{DropBefore: true}
		case n < 50:
			return sandbox.Fault{DropAfter: true}
		case n < 80:
			return sandbox.Fault{Status: 422}
		}
		return sandbox.Fault{}
	})
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	client, err := refunds.NewClient(server.URL())
	if err != nil {
		return err
	}
	s, err := c.open(ctx, true)
	if err != nil {
		return err
	}
	defer s.close()

	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for n := range int64(demoRefunds) {
		record := &refunds.Refund{RefundID: fmt.Sprintf("rf_%05d", n), Amount: new(100 + n*37%20_000), Currency: "EUR"}
		if _, err := s.Enqueue(ctx, tx, outbox.Item{AccountID: "sandbox", Refund: record}); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for kill := range demoKills {
		enough := func() bool { return engine.RequestCount(sandbox.Refunds) >= (kill+1)*demoRefunds/(demoKills+2) }
		if err := c.killWorker(ctx, server.URL(), enough); err != nil {
			return err
		}
	}
	for number := range 3 {
		plan, err := s.demoReport(ctx, client, engine)
		if err != nil {
			return err
		}
		fmt.Fprintln(c.stdout, "\nreport", number+1, "of the sandbox")
		c.printPlan(plan)
		if len(plan.Differences) > 0 {
			return errors.New("outbox: a refund was lost or doubled")
		}
	}
	return nil
}

// demoReport works what can be sent, and settles what is unknown by what the sandbox has.
func (s *store) demoReport(ctx context.Context, client *refunds.Client, engine *sandbox.Engine) (*outbox.Plan, error) {
	if err := s.age(ctx); err != nil {
		return nil, err
	}
	if err := s.Run(ctx, outbox.Config{Client: client, Drain: true}); err != nil {
		return nil, err
	}
	if err := s.age(ctx); err != nil {
		return nil, err
	}
	report := outbox.Report{Until: time.Now(), Resubmit: true}
	for line, there := range engine.Refunds() {
		var r refunds.Refund
		json.Unmarshal(there.Body, &r) // the sandbox has checked it
		report.Rows = append(report.Rows, outbox.ReportRow{Line: line + 1, AccountID: "sandbox", RefundID: r.RefundID, Amount: r.Amount, Currency: r.Currency})
	}
	plan, err := s.Compare(ctx, report)
	if err == nil {
		_, err = plan.Apply(ctx, "demo", "report of the sandbox")
	}
	return plan, err
}

// killWorker starts a worker as a process of its own, and kills it when it has sent enough.
func (c *command) killWorker(ctx context.Context, url string, enough func() bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "work", "-db", c.file)
	cmd.Env = []string{"CARDDATA_REFUND_URL=" + url}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	for !enough() {
		select {
		case err := <-ended:
			return fmt.Errorf("the worker ended by itself: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	cmd.Process.Kill()
	<-ended
	fmt.Fprintln(c.stdout, "killed the worker")
	return nil
}

// age sets the time of the requests and the jobs back: nothing is concluded about them for
// some minutes, and the demo does not wait.
func (s *store) age(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, `UPDATE outbox_refund SET first_sent_at = '2026-01-01T00:00:00.000Z', sent_at = '2026-01-01T00:00:00.000Z' WHERE sent_at <> '';
		UPDATE river_job SET attempted_at = '2026-01-01 00:00:00' WHERE state = 'running';
		DELETE FROM river_leader`)
	return err
}
