package main

import (
	"context"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// A reconciliation compares the bookings and the outbox with the sandbox's record.
type reconciliation struct {
	summary
	recorded int // unknown refunds that the sandbox has recorded
	ghosts   int // recorded, and never booked
	lost     int // booked, and neither recorded, rejected nor awaiting a decision
	doubled  int // recorded more than once
	wrong    int // rejected or not sent, and recorded all the same
}

func (r *reconciliation) faultless() bool { return r.ghosts+r.lost+r.doubled+r.wrong == 0 }

func reconcile(ctx context.Context, db session, record []sandbox.Refund) (r reconciliation, err error) {
	if r.summary, err = summarize(ctx, db); err != nil {
		return r, err
	}
	times := make(map[string]int)
	for _, refund := range record {
		times[refund.RefundID]++
	}
	err = db.query(ctx, func(scan scanner) error {
		var id, state string
		if err := scan(&id, &state); err != nil {
			return err
		}
		n := times[id]
		delete(times, id)
		r.doubled += max(0, n-1)
		switch {
		case state == unknown && n > 0:
			r.recorded++
		case state == unknown, state == rejected && n == 0, state == accepted && n > 0:
		case n == 0:
			r.lost++
		default:
			r.wrong++
		}
		return nil
	}, `SELECT b.refund_id, COALESCE(r.state, '') FROM demo_booking AS b LEFT JOIN outbox_refund AS r ON r.refund_id = b.refund_id`)
	r.ghosts = len(times)
	return r, err
}

// report prints the reconciliation.
func (d *demonstration) report(ctx context.Context) (int, error) {
	r, err := reconcile(ctx, d.db, d.engine.Refunds())
	if err != nil {
		return 0, err
	}
	w := tabwriter.NewWriter(d.p.stdout, 0, 0, 2, ' ', 0)
	line := func(name string, n int, note string, args ...any) {
		if note != "" {
			note = "\t" + fmt.Sprintf(note, args...)
		}
		fmt.Fprintf(w, "%s\t%s%s\n", name, grouped(n), note)
	}
	line("enqueued", r.Enqueued, "of %s; %s were rolled back with their bookings", grouped(demoRefunds), grouped(demoRefunds-r.Enqueued))
	line("killed", demoKills, "times, with SIGKILL")
	line("accepted", r.Accepted, "")
	line("rejected", r.Rejected, "")
	line("unknown", r.Unknown, "awaiting a decision; the sandbox has recorded %s of them", grouped(r.recorded))
	line("ghosts", r.ghosts, "recorded by the sandbox, and never booked")
	line("lost", r.lost, "booked, and neither recorded, rejected nor awaiting a decision")
	line("doubled", r.doubled, "recorded by the sandbox more than once")
	line("wrong", r.wrong, "recorded by the sandbox, and rejected here")
	if err := w.Flush(); err != nil {
		return 0, err
	}
	for _, state := range []string{rejected, unknown} {
		if err := printReasons(ctx, d.p.stdout, d.db, state+", by reason", state); err != nil {
			return 0, err
		}
	}
	if err := printRefunds(ctx, d.p.stdout, d.db, "rejected, the latest", filter{state: rejected}, 5); err != nil {
		return 0, err
	}
	file, err := filepath.Abs(d.file) // go -C runs elsewhere
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(d.p.stdout, "\nlook around: go -C examples/outbox run . status -db %s\n", target.Line(file))
	if !r.faultless() {
		return target.ExitFailed, nil
	}
	return 0, nil
}
