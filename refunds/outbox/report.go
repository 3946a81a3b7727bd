package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Report is what the service says that it has recorded, for all accounts of the outbox.
type Report struct {
	Rows []ReportRow // one for each refund
	// From and Until say for which time the report is complete: it has everything that was
	// recorded from From until Until. A zero From is the beginning. With a zero Until nothing
	// is concluded from what the report does not have.
	From, Until time.Time
	// Resubmit sends again what is Absent by an earlier report, if this one is complete
	// until a later time and does not have it either.
	Resubmit bool
}

// A ReportRow is one refund of a report.
type ReportRow struct {
	Line      int    // where the row stands, for a person
	AccountID string // the refund's, as the next three
	RefundID  string
	Amount    *int64 // nil: unset
	Currency  string
	// Err is why the row cannot be used; RefundID may be set beside it. Nothing is
	// concluded about that refund_id. A report that cannot be read to its end must not be
	// compared: what is missing from it would become absent.
	Err error
}

// A Difference is a row of a report that does not fit the refund here, or the reverse.
type Difference struct {
	Line int    // ReportRow.Line; 0: the report has no such row
	Row  int64  // Entry.Row; 0: there is no such refund here
	What string // what does not fit, in a sentence for a person
}

// A Plan is what a report says about the refunds of the outbox.
type Plan struct {
	Found       []Entry      // the report has them: they become Accepted
	NotFound    []Entry      // it is complete and does not have them: Unknown becomes Absent
	SendAgain   []Entry      // a second complete report does not have them: Absent becomes Pending
	Agreed      int          // accepted here, and in the report
	StillAbsent int          // as SendAgain, without Report.Resubmit
	NothingNew  int          // absent, and the report is not later than the one before, or not complete for when they were sent
	NotCovered  int          // unknown, and not sent in the time for which the report is complete
	Differences []Difference // what a person has to look at

	outbox *Outbox
	report Report
	told   map[*ReportRow]bool // rows that a refund was found for
}

// Compare compares a report with the refunds of the outbox, and changes nothing: show the
// plan to somebody, then call [Plan.Apply]. A refund is found if account, refund_id, amount
// and currency are the same. It is not found if it was sent at least a minute before
// Until. An update of an accepted refund cannot be told from it and stays unknown. A refund_id
// that the report has twice is a difference, even if two records of it were sent from here.
//
// The report and all refunds of the outbox are held in memory, about a kilobyte each.
// A report without rows, or that is complete until a time to come, is an error.
func (o *Outbox) Compare(ctx context.Context, report Report) (*Plan, error) {
	switch {
	case len(report.Rows) == 0:
		return nil, errors.New("outbox: the report has no rows")
	case report.Until.After(time.Now()):
		return nil, errors.New("outbox: a report cannot be complete until a time to come")
	}
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	here, err := o.list(ctx, `TRUE ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("outbox: compare: %w", err)
	}
	type key struct{ account, refundID string }
	ours := make(map[key][]Entry)
	for _, e := range here {
		k := key{e.AccountID, e.RefundID}
		ours[k] = append(ours[k], e)
	}
	theirs := make(map[string][]*ReportRow) // by refund_id
	for i := range report.Rows {
		row := &report.Rows[i]
		theirs[row.RefundID] = append(theirs[row.RefundID], row)
	}
	p := &Plan{outbox: o, report: report, told: make(map[*ReportRow]bool)}
	for _, e := range here {
		group := ours[key{e.AccountID, e.RefundID}]
		if e.Row != group[0].Row { // once for each refund_id
			continue
		}
		var its, elsewhere []*ReportRow
		for _, row := range theirs[e.RefundID] {
			switch {
			case row.Err != nil || row.AccountID == e.AccountID:
				its = append(its, row)
			case ours[key{row.AccountID, row.RefundID}] == nil: // else it is about another refund of ours
				elsewhere = append(elsewhere, row)
			}
		}
		switch {
		case len(its) > 0:
			p.compare(group, its)
		case len(elsewhere) > 0:
			for _, row := range elsewhere {
				p.differ(row, e.Row, "the refund has another account here")
			}
		default:
			p.missing(group)
		}
	}
	for i := range report.Rows {
		switch row := &report.Rows[i]; {
		case p.told[row]:
		case row.Err != nil:
			p.differ(row, 0, row.Err.Error())
		default:
			p.differ(row, 0, "no such refund here")
		}
	}
	slices.SortStableFunc(p.Differences, func(a, b Difference) int { return cmp.Compare(a.Line, b.Line) })
	return p, nil
}

func (p *Plan) differ(row *ReportRow, refund int64, what string) {
	line := 0
	if row != nil {
		line, p.told[row] = row.Line, true
	}
	p.Differences = append(p.Differences, Difference{line, refund, what})
}

// inDoubt returns the first record of a refund_id that is not settled. Those behind it
// were not sent. A pending one may have been sent before a backup was restored.
func inDoubt(group []Entry) (e Entry, found bool) {
	for _, e := range group {
		if e.State == Unknown || e.State == Absent || e.State == Pending {
			return e, true
		}
	}
	return e, false
}

// compare compares the records of a refund_id with the rows that the report has of
// it in the same account.
func (p *Plan) compare(group []Entry, rows []*ReportRow) {
	first, sent := rows[0], 0
	for _, e := range group {
		if e.Attempts > 0 {
			sent++
		}
	}
	for i, row := range rows {
		p.told[row] = true
		switch {
		case row.Err != nil:
			p.differ(row, group[0].Row, row.Err.Error())
			return
		case i > 0:
			why := "the service has the refund twice, or the report is wrong"
			if sent > 1 {
				why = fmt.Sprintf("it may be an update, as %d records of the refund_id were sent from here; otherwise %s", sent, why)
			}
			p.differ(row, group[0].Row, fmt.Sprintf("repeats line %d: %s", first.Line, why))
			if money(row.Amount, row.Currency) != money(first.Amount, first.Currency) {
				return
			}
		}
	}
	accepted := slices.DeleteFunc(slices.Clone(group), func(e Entry) bool { return e.State != Accepted })
	matches := func(e Entry) bool { return e.differs(first.Amount, first.Currency) == "" }
	e, doubted := inDoubt(group)
	switch {
	case slices.ContainsFunc(accepted, matches):
		p.Agreed++
		if doubted && e.State != Pending {
			p.differ(nil, e.Row, "another record of the refund_id is accepted: the report cannot tell them apart")
		}
	case doubted && matches(e):
		p.Found = append(p.Found, e)
	case doubted:
		p.differ(first, e.Row, e.differs(first.Amount, first.Currency))
	case len(accepted) > 0:
		p.differ(first, accepted[0].Row, accepted[0].differs(first.Amount, first.Currency))
	case group[0].State == Sending: // its outcome is on its way
	default:
		p.differ(first, group[0].Row, fmt.Sprintf("the service has it, and it is %s here", group[0].State))
	}
}

// missing deals with a refund_id that the report does not have.
func (p *Plan) missing(group []Entry) {
	covered := func(e Entry) bool {
		// A request can leave, and be recorded, within a minute of its mark.
		return !e.LastSent.Add(submitTimeout).After(p.report.Until) && !e.FirstSent.Before(p.report.From)
	}
	lost := false
	for _, e := range group {
		if e.State == Accepted && covered(e) {
			lost = true
			p.differ(nil, e.Row, "accepted here, and the report does not have it")
		}
	}
	e, doubted := inDoubt(group)
	switch {
	case !doubted || e.State == Pending || lost:
	case e.State == Unknown && !covered(e):
		p.NotCovered++
	case e.State == Unknown:
		p.NotFound = append(p.NotFound, e)
	case !covered(e) || e.absentUntil.IsZero() || !p.report.Until.Truncate(time.Millisecond).After(e.absentUntil):
		p.NothingNew++
	case p.report.Resubmit:
		p.SendAgain = append(p.SendAgain, e)
	default:
		p.StillAbsent++
	}
}

// Apply makes the changes of the plan, and returns how many it made. The error joins a
// [*RowError] for each of the others, such as a refund that is not as it was compared;
// what is changed stays changed. by is who says so, and is required; why stands in
// the log.
func (p *Plan) Apply(ctx context.Context, by, why string) (changed int, err error) {
	var choices []choice
	for e, entries := range map[event][]Entry{eventFound: p.Found, eventNotFound: p.NotFound, eventAbsentTwice: p.SendAgain} {
		for _, entry := range entries {
			choices = append(choices, choice{entry, e, p.report.Until})
		}
	}
	slices.SortFunc(choices, func(a, b choice) int { return cmp.Compare(a.Row, b.Row) })
	return p.outbox.apply(ctx, choices, by, why)
}
