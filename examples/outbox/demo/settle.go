package demo

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/examples/outbox/table"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

// settle does what an operator does. A first report, in which every 300th amount is
// wrong, says which of the unknown refunds the sandbox has. A second one corrects it,
// and confirms what the sandbox does not have, which is then sent again.
func (d *demonstration) settle(ctx context.Context) error {
	for _, report := range []struct {
		name    string
		wrong   int
		options []string
	}{{"first.csv", 300, nil}, {"second.csv", 0, []string{"-resubmit"}}} {
		if err := d.age(ctx); err != nil {
			return err
		}
		file := filepath.Join(d.dir, report.name)
		if err := writeReport(file, d.engine.Refunds(), report.wrong); err != nil {
			return err
		}
		args := append([]string{"-by", "demo", "-import", file, "-complete-until", time.Now().UTC().Format(time.RFC3339Nano)}, report.options...)
		fmt.Fprintln(d.stdout, "\n$ outbox resolve -import", report.name, "-complete-until NOW", strings.Join(report.options, " "))
		said, err := d.outbox(ctx, "resolve", args...)
		if err != nil {
			return err
		}
		d.stdout.Write(said)
		token := regexp.MustCompile(`-expect (\S+)`).FindSubmatch(said)
		if token == nil {
			return errors.New("the preview has no token")
		}
		if _, err := d.outbox(ctx, "resolve", append(args, "-expect", string(token[1]))...); err != nil {
			return err
		}
	}
	_, err := d.outbox(ctx, "work", "-drain")
	return err
}

// age sets the time of the requests back: nothing is concluded about those of the last
// minute, and the demo does not wait.
func (d *demonstration) age(ctx context.Context) error {
	_, err := d.db.Exec(ctx, `UPDATE outbox_refund SET first_sent_at = $1, sent_at = $1 WHERE sent_at <> ''`,
		time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15:04:05.000Z"))
	return err
}

// writeReport writes what the sandbox has recorded. The amount of every wrong-th row
// is wrong.
func writeReport(file string, recorded []sandbox.Refund, wrong int) error {
	rows := [][]string{{"account", "refund_id", "amount", "currency"}}
	for i, record := range recorded {
		var r refunds.Refund
		if err := json.Unmarshal(record.Body, &r); err != nil {
			return err
		}
		if wrong > 0 && i%wrong == wrong-1 {
			*r.Amount++
		}
		rows = append(rows, []string{record.AccountID, r.RefundID, strconv.FormatInt(*r.Amount, 10), r.Currency})
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(out).WriteAll(rows), out.Close())
}

// ask settles what is still unknown by a lookup in what the sandbox has recorded. Its
// path says that the service has no such endpoint.
func (d *demonstration) ask(ctx context.Context) error {
	const path = "/not-the-service/refunds"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path+"/{account}/{refund}", func(w http.ResponseWriter, r *http.Request) {
		said := map[string]any{"found": false}
		for _, recorded := range d.engine.Refunds() {
			var refund refunds.Refund
			if recorded.AccountID == r.PathValue("account") && recorded.RefundID == r.PathValue("refund") && json.Unmarshal(recorded.Body, &refund) == nil {
				said = map[string]any{"found": true, "amount": refund.Amount, "currency": refund.Currency}
			}
		}
		json.NewEncoder(w).Encode(said)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	if err := d.age(ctx); err != nil {
		return err
	}
	_, err := d.outbox(ctx, "work", "-drain", "-lookup", server.URL+path)
	return err
}

// compare compares the bookings and the outbox with the sandbox's record.
func (d *demonstration) compare(ctx context.Context) error {
	s, err := refundoutbox.Summarize(ctx, d.db)
	if err != nil {
		return err
	}
	times := make(map[string]int)
	for _, refund := range d.engine.Refunds() {
		times[refund.RefundID]++
	}
	var lost, doubled, wrong int
	err = d.db.Query(ctx, func(scan refundoutbox.Scanner) error {
		var id string
		var state refundoutbox.State
		if err := scan(&id, &state); err != nil {
			return err
		}
		n := times[id]
		delete(times, id)
		doubled += max(0, n-1)
		switch {
		case state == refundoutbox.Unknown, state == refundoutbox.Absent:
		case state == refundoutbox.Accepted && n == 0, state == "":
			lost++
		case state != refundoutbox.Accepted && n > 0:
			wrong++
		}
		return nil
	}, `SELECT b.refund_id, COALESCE(r.state, '') FROM demo_booking AS b LEFT JOIN outbox_refund AS r ON r.refund_id = b.refund_id`)
	if err != nil {
		return err
	}
	fmt.Fprintln(d.stdout, "\nwhat became of them")
	err = table.Print(d.stdout, "", [][]any{
		{"enqueued", s.Enqueued, fmt.Sprintf("of %s; %d were rolled back with their bookings", table.Number(booked), booked-s.Enqueued)},
		{"killed", kills, "times, with SIGKILL"},
		{"accepted", s.Accepted},
		{"rejected", s.Rejected},
		{"unknown", s.Unknown, "the service may have them, or not"},
		{"absent", s.Absent, "the sandbox does not have them: a third report would send them again"},
		{"ghosts", len(times), "recorded by the sandbox, and never booked"},
		{"lost", lost, "booked, and not in the outbox, or accepted there and not recorded"},
		{"doubled", doubled, "recorded by the sandbox more than once"},
		{"wrong", wrong, "recorded by the sandbox, and rejected here"},
	})
	if len(times)+lost+doubled+wrong > 0 {
		return errors.New("outbox: a refund was lost, made up or doubled")
	}
	return err
}
