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
}

// A ReportRow is one refund of a report.
type ReportRow struct {
	Line      int    // where the row stands, for a person
	AccountID string // the refund's, as the next three
	RefundID  string
	Amount    *int64 // nil: unset
	Currency  string
	// Err is why the row cannot be used; RefundID may be set beside it. A report that cannot
	// be read to its end must not be compared: what is behind it would be NotFound.
	Err error
}

// A Comparison is what a report says about the refunds of the outbox.
type Comparison struct {
	Found       []Entry      // the report has them: decide Recorded
	NotFound    []Entry      // unknown, and the report is complete and does not have them: look them up, and decide
	Agreed      int          // accepted here, and in the report
	NotCovered  int          // unknown, and not sent in the time for which the report is complete, or a row of it is unclear
	Differences []Difference // what a person has to look at
}

// A Difference is a row of a report that does not fit the refund here, or the reverse.
type Difference struct {
	Line int    // ReportRow.Line; 0: the report has no such row
	Row  int64  // Entry.Row; 0: there is no such refund here
	What string // what does not fit, in a sentence for a person
}

func (c *Comparison) differ(line int, row int64, format string, args ...any) {
	c.Differences = append(c.Differences, Difference{line, row, fmt.Sprintf(format, args...)})
}

// Compare compares a report with the refunds of the outbox, and changes nothing: show the
// comparison to somebody, then give what they chose of it to [Outbox.Decide]. A refund is
// found if account, refund_id, amount and currency are the same. It is not found if it was
// sent at least a minute before Until, and the report has no row that may be about it. An
// update of an accepted refund cannot be told from it and stays unknown.
//
// The report and all refunds of the outbox are held in memory, about a kilobyte each.
// A report without rows, or that is complete until a time to come, is an error.
func (o *Outbox) Compare(ctx context.Context, report Report) (*Comparison, error) {
	switch {
	case len(report.Rows) == 0:
		return nil, errors.New("outbox: the report has no rows")
	case report.Until.After(time.Now()):
		return nil, errors.New("outbox: a report cannot be complete until a time to come")
	}
	here, err := o.List(ctx)
	if err != nil {
		return nil, err
	}
	type key struct{ account, refundID string }
	ours := make(map[key][]Entry)
	for _, e := range here {
		k := key{e.AccountID, e.RefundID}
		ours[k] = append(ours[k], e)
	}
	c := new(Comparison)
	theirs := make(map[key][]ReportRow)
	unclear := make(map[string]bool) // refund_ids of rows that may be about a refund here
	for _, row := range report.Rows {
		k := key{row.AccountID, row.RefundID}
		switch {
		case row.Err != nil:
			unclear[row.RefundID] = true
			c.differ(row.Line, 0, "%v", row.Err)
			continue
		case ours[k] == nil:
			unclear[row.RefundID] = true
			c.differ(row.Line, 0, "no such refund of this account here")
			continue
		case theirs[k] != nil:
			c.differ(row.Line, ours[k][0].Row, "repeats line %d: the service has an update of the refund, or has it twice", theirs[k][0].Line)
		}
		theirs[k] = append(theirs[k], row)
	}
	for _, e := range here {
		k := key{e.AccountID, e.RefundID}
		switch group := ours[k]; {
		case e.Row != group[0].Row: // once for each refund_id
		case theirs[k] != nil:
			c.compare(group, theirs[k])
		default:
			c.missing(group, report, unclear[e.RefundID])
		}
	}
	slices.SortStableFunc(c.Differences, func(a, b Difference) int { return cmp.Compare(a.Line, b.Line) })
	return c, nil
}

// money writes the amount and the currency.
func money(amount *int64, currency string) string {
	if amount == nil {
		return "unset " + currency
	}
	return fmt.Sprintf("%d %s", *amount, currency)
}

// compare compares the records of a refund_id with the rows that the report has of it.
func (c *Comparison) compare(group []Entry, rows []ReportRow) {
	matches := func(e *Entry) bool {
		return e != nil && slices.ContainsFunc(rows, func(r ReportRow) bool { return money(r.Amount, r.Currency) == money(e.Amount, e.Currency) })
	}
	// Behind a record that is open, nothing was sent. A pending one may have been sent
	// before a backup was restored.
	var open, accepted *Entry
	for i := range group {
		switch e := &group[i]; e.State {
		case Accepted:
			if !matches(accepted) {
				accepted = e
			}
		case Unknown, Pending:
			open = cmp.Or(open, e)
		}
	}
	first, other := rows[0], cmp.Or(open, accepted)
	switch {
	case matches(accepted):
		c.Agreed++
		if open != nil && open.State == Unknown {
			c.differ(0, open.Row, "another record of the refund_id is accepted: the report cannot tell them apart")
		}
	case matches(open):
		c.Found = append(c.Found, *open)
	case other != nil:
		c.differ(first.Line, other.Row, "amount or currency differs: %s there, %s here", money(first.Amount, first.Currency), money(other.Amount, other.Currency))
	case group[0].State == Rejected: // and not sending, whose outcome is on its way
		c.differ(first.Line, group[0].Row, "the service has it, and it is rejected here")
	}
}

// missing deals with a refund_id that the report does not have.
func (c *Comparison) missing(group []Entry, report Report, unclear bool) {
	covered := func(e Entry) bool {
		// A request can leave, and be recorded, within a minute after it is Sending.
		return !unclear && !e.LastSent.Add(submitTimeout).After(report.Until) && !e.EnqueuedAt.Before(report.From)
	}
	lost := false
	for _, e := range group {
		switch {
		case e.State == Accepted && covered(e):
			lost = true
			c.differ(0, e.Row, "accepted here, and the report does not have it")
		case e.State == Unknown && !covered(e):
			c.NotCovered++
		case e.State == Unknown && !lost:
			c.NotFound = append(c.NotFound, e)
		}
	}
}
