package refundoutbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A ReportRow is what the service says that it has.
type ReportRow struct {
	Line     int    `json:"-"` // of the file
	Account  string `json:"account"`
	RefundID string `json:"refund_id"`
	Amount   *int64 `json:"amount"` // nil: unset
	Currency string `json:"currency"`
	Err      error  `json:"-"` // why the row cannot be used; of its members, only RefundID may be set
}

// A Report is a list of what the service has recorded.
type Report struct {
	ID    string // tells it from another report
	Rows  []ReportRow
	From  time.Time // the report has all refunds that it recorded from here; zero: from the beginning
	Until time.Time // to here; zero: nothing is concluded from what it does not have
	// Resubmit sends what is absent, and not in this complete report either.
	Resubmit bool
}

// A Difference is a row of a report, or a refund, that does not fit the other.
type Difference struct {
	Line int   // of the report; 0: it has none
	Row  int64 // of the refund; 0: there is none
	What string
}

// A Plan is what a report says about the refunds here. Making it changes nothing.
type Plan struct {
	Differences []Difference
	Agreed      int // rows about refunds that are accepted here, too
	Found       int // that become accepted
	NotFound    int // that become absent
	SendAgain   int // that are absent in a second complete report, and sent again
	AbsentTwice int // that would be, with Resubmit
	NotCovered  int // unknown, and not sent in the time that the report is complete for

	report *Report
	chosen []Listed            // for a transition each
	told   map[*ReportRow]bool // rows that a refund was found for
}

func newPlan(report *Report) *Plan {
	return &Plan{report: report, told: make(map[*ReportRow]bool)}
}

// Compare finds out what a report says about the refunds here.
func Compare(ctx context.Context, db Session, report *Report) (*Plan, error) {
	switch {
	case len(report.Rows) == 0:
		return nil, errors.New("outbox: the report has no rows")
	case report.Until.After(time.Now()):
		return nil, errors.New("outbox: a report cannot be complete until a time to come")
	}
	here, err := list(ctx, db, `TRUE ORDER BY id`)
	if err != nil {
		return nil, err
	}
	type key struct{ account, refundID string }
	ours := make(map[key][]Listed)
	for _, l := range here {
		k := key{l.Account, l.RefundID}
		ours[k] = append(ours[k], l)
	}
	theirs := make(map[string][]*ReportRow) // by refund_id
	for i := range report.Rows {
		row := &report.Rows[i]
		theirs[row.RefundID] = append(theirs[row.RefundID], row)
	}
	p := newPlan(report)
	for _, l := range here {
		group := ours[key{l.Account, l.RefundID}]
		if l.Row != group[0].Row { // once for each refund_id
			continue
		}
		var its, elsewhere []*ReportRow
		for _, row := range theirs[l.RefundID] {
			switch {
			case row.Err != nil || row.Account == l.Account:
				its = append(its, row)
			case ours[key{row.Account, row.RefundID}] == nil: // else it is about another refund of ours
				elsewhere = append(elsewhere, row)
			}
		}
		switch {
		case len(its) > 0:
			p.compare(group, its)
		case len(elsewhere) > 0:
			for _, row := range elsewhere {
				p.differ(row, l.Row, "the refund has another account here")
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

func (p *Plan) choose(l Listed, event Event) {
	l.event = event
	p.chosen = append(p.chosen, l)
}

// inDoubt returns the first record of a refund_id that is not settled. Those behind it
// were not sent. A pending one may have been sent before a backup was restored.
func inDoubt(group []Listed) (l Listed, found bool) {
	for _, l := range group {
		if l.State == Unknown || l.State == Absent || l.State == Pending {
			return l, true
		}
	}
	return l, false
}

// compare compares the records of a refund_id with the rows that the report has of
// it in the same account.
func (p *Plan) compare(group []Listed, rows []*ReportRow) {
	first := rows[0]
	for i, row := range rows {
		p.told[row] = true
		switch {
		case row.Err != nil:
			p.differ(row, group[0].Row, row.Err.Error())
			return
		case i > 0:
			p.differ(row, group[0].Row, fmt.Sprintf("repeats line %d: the service has the refund twice, or the report is wrong", first.Line))
			if group[0].differs(row.Amount, row.Currency) != group[0].differs(first.Amount, first.Currency) {
				return
			}
		}
	}
	accepted := slices.DeleteFunc(slices.Clone(group), func(l Listed) bool { return l.State != Accepted })
	matches := func(l Listed) bool { return l.differs(first.Amount, first.Currency) == "" }
	l, doubted := inDoubt(group)
	switch {
	case slices.ContainsFunc(accepted, matches):
		p.Agreed++
		if doubted && l.State != Pending {
			p.differ(nil, l.Row, "another record of the refund_id is accepted: the report cannot tell them apart")
		}
	case doubted && matches(l):
		p.Found++
		p.choose(l, eventFound)
	case doubted:
		p.differ(first, l.Row, l.differs(first.Amount, first.Currency))
	case len(accepted) > 0:
		p.differ(first, accepted[0].Row, accepted[0].differs(first.Amount, first.Currency))
	case group[0].State == Sending: // its outcome is on its way
	default:
		p.differ(first, group[0].Row, fmt.Sprintf("the service has it, and it is %s here", group[0].State))
	}
}

// missing deals with a refund_id that the report does not have.
func (p *Plan) missing(group []Listed) {
	covered := func(l Listed) bool {
		// A request can leave, and be recorded, within a minute of its marker.
		return !parseTime(l.SentAt).Add(submitTimeout).After(p.report.Until) && !parseTime(l.FirstSentAt).Before(p.report.From)
	}
	lost := false
	for _, l := range group {
		if l.State == Accepted && covered(l) {
			lost = true
			p.differ(nil, l.Row, "accepted here, and the report does not have it")
		}
	}
	l, doubted := inDoubt(group)
	switch {
	case !doubted || l.State == Pending || lost:
	case l.State == Unknown && !covered(l):
		p.NotCovered++
	case l.State == Unknown:
		p.NotFound++
		p.choose(l, eventNotFound)
	case !covered(l) || !isLater(p.stamp(), l.AbsentUntil): // the same report, or an older one
	case p.report.Resubmit:
		p.SendAgain++
		p.choose(l, eventAbsentTwice)
	default:
		p.AbsentTwice++
	}
}

// stamp is what is noted of the report with what it does not have.
func (p *Plan) stamp() string { return timeText(p.report.Until) + " " + p.report.ID }

// isLater tells whether a report is another than an earlier one, and complete until
// a later time.
func isLater(stamp, earlier string) bool {
	const n = len(timeLayout)
	return earlier != "" && stamp[:n] > earlier[:n] && stamp[n:] != earlier[n:]
}

// Changes tells how many refunds the plan changes.
func (p *Plan) Changes() int { return len(p.chosen) }

// Token names the plan, and changes when it does.
func (p *Plan) Token() string { return Token(p.chosen, p.stamp(), timeText(p.report.From)) }

// Apply makes the plan's transitions, each if the refund is still as it was, and
// returns how many it made.
func (p *Plan) Apply(ctx context.Context, db *Database, said Decision) (changed int, err error) {
	for batch := range slices.Chunk(p.chosen, 100) {
		made := 0
		err := db.Transact(ctx, func(tx Tx) error {
			for _, l := range batch {
				said.What = l.event
				done, err := settle(ctx, tx, l.Row, l.Attempt, l.State, l.event, nil, said)
				if err == nil && done && l.event == eventNotFound {
					_, err = tx.Exec(ctx, `UPDATE outbox_refund SET absent_until = $2 WHERE id = $1`, l.Row, p.stamp())
				}
				if err != nil {
					return err
				}
				if done {
					made++
				}
			}
			return nil
		})
		if err != nil {
			return changed, err
		}
		changed += made
	}
	return changed, nil
}
