package outbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

func row(line int, account, id string, amount int64, currency string) ReportRow {
	return ReportRow{Line: line, AccountID: account, RefundID: id, Amount: &amount, Currency: currency}
}

// unknowns makes refunds with the ids unknown.
func (s *system) unknowns(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.enqueue(refund(id, 5))
		s.set(`UPDATE outbox_refund SET state = 'unknown', attempts = 1, doubtful = 1, first_sent_at = $1, sent_at = $1 WHERE state = 'pending'`,
			timeText(time.Now().Add(-time.Hour)))
	}
}

// changes counts what a plan changes.
func changes(p *Plan) int { return len(p.Found) + len(p.NotFound) + len(p.SendAgain) }

func (s *system) compare(r Report) *Plan {
	s.t.Helper()
	p, err := s.box.Compare(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *system) apply(p *Plan) {
	s.t.Helper()
	if n, err := p.Apply(s.t.Context(), "ann", ""); err != nil || n != changes(p) {
		s.t.Fatalf("%d of %d changes, %v", n, changes(p), err)
	}
}

// told are the differences of a plan.
func told(p *Plan) string {
	var lines []string
	for _, d := range p.Differences {
		lines = append(lines, fmt.Sprintf("%d %d %s", d.Line, d.Row, d.What))
	}
	return strings.Join(lines, "; ")
}

// TestReport: what is in a complete report becomes accepted, and what is not becomes
// absent, which is sent again only when a second complete report does not have it.
func TestReport(t *testing.T) {
	s := newSystem(t)
	s.unknowns("a", "b")
	first := Report{Until: time.Now().Add(-10 * time.Minute), Rows: []ReportRow{row(2, "acct", "a", 5, "EUR")}}
	p := s.compare(first)
	if len(p.Found) != 1 || len(p.NotFound) != 1 || len(p.Differences) != 0 {
		t.Errorf("%+v", p)
	}
	s.check("unknown unknown")
	s.apply(p)
	s.check("accepted absent")
	s.checkLog("found not found")
	for name, again := range map[string]Report{
		"the same report":            {Until: first.Until, Resubmit: true, Rows: append(first.Rows, row(3, "acct", "z", 1, "EUR"))},
		"an older one":               {Until: time.Now().Add(-time.Hour + 2*time.Minute), Resubmit: true, Rows: first.Rows},
		"not complete":               {Rows: first.Rows},
		"complete from a later time": {From: time.Now().Add(-time.Minute), Until: time.Now(), Resubmit: true, Rows: first.Rows},
	} {
		if p := s.compare(again); changes(p) != 0 || p.StillAbsent != 0 || p.NothingNew != 1 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p := s.compare(Report{Until: time.Now(), Rows: append(first.Rows, row(3, "acct", "b", 5, "EUR"))}); len(p.Found) != 1 || changes(p) != 1 || p.Agreed != 1 {
		t.Errorf("one that has it: %+v", p)
	}
	second := Report{Until: time.Now(), Rows: first.Rows}
	if p := s.compare(second); changes(p) != 0 || p.StillAbsent != 1 || p.NothingNew != 0 {
		t.Errorf("%+v", p)
	}
	second.Resubmit = true
	s.apply(s.compare(second))
	s.check("accepted pending")
	s.attempt(2, sandbox.Fault{Status: 409})
	s.check("accepted unknown")
}

// TestReportDifferences: every row that does not fit is told, and changes nothing of
// its refund.
func TestReportDifferences(t *testing.T) {
	for _, test := range []struct {
		name string
		rows []ReportRow
		want string // the differences
		left string // the state of "a", with "b" in the report
	}{
		{"amount", []ReportRow{row(2, "acct", "a", 6, "EUR")}, "2 1 amount or currency differs: 6 EUR there, 5 EUR here", "unknown"},
		{"no amount", []ReportRow{{Line: 2, AccountID: "acct", RefundID: "a", Currency: "EUR"}}, "2 1 amount or currency differs: unset EUR there, 5 EUR here", "unknown"},
		{"currency", []ReportRow{row(2, "acct", "a", 5, "USD")}, "2 1 amount or currency differs: 5 USD there, 5 EUR here", "unknown"},
		{"account", []ReportRow{row(2, "other", "a", 5, "EUR")}, "2 1 the refund has another account here", "unknown"},
		{"unreadable", []ReportRow{{Line: 2, RefundID: "a", Err: fmt.Errorf("amount is no JSON")}}, "2 1 amount is no JSON", "unknown"},
		{"unreadable altogether", []ReportRow{{Line: 2, Err: fmt.Errorf("the line is not UTF-8")}}, "2 0 the line is not UTF-8", "absent"},
		{"unknown id", []ReportRow{row(2, "acct", "z", 5, "EUR")}, "2 0 no such refund here", "absent"},
		{"twice", []ReportRow{row(2, "acct", "a", 5, "EUR"), row(3, "acct", "a", 5, "EUR")},
			"3 1 repeats line 2: the service has the refund twice, or the report is wrong", "accepted"},
		{"twice with two amounts", []ReportRow{row(2, "acct", "a", 5, "EUR"), row(3, "acct", "a", 6, "EUR")},
			"3 1 repeats line 2: the service has the refund twice, or the report is wrong", "unknown"},
	} {
		s := newSystem(t)
		s.unknowns("a", "b")
		p := s.compare(Report{Until: time.Now(), Rows: append(test.rows, row(9, "acct", "b", 5, "EUR"))})
		if got := told(p); got != test.want {
			t.Errorf("%s: told %q, want %q", test.name, got, test.want)
		}
		s.apply(p)
		s.check(test.left + " accepted")
	}
}

// TestReportUpdate: a row that repeats another one may be an update that was sent from here.
func TestReportUpdate(t *testing.T) {
	s := newSystem(t)
	update := refund("a", 5)
	update.SVCCodes.SVCRefundStatus = "done"
	s.enqueue(refund("a", 5), update)
	rows := []ReportRow{row(2, "acct", "a", 5, "EUR"), row(3, "acct", "a", 5, "EUR")}
	s.attempt(1, sandbox.Fault{})
	if p := s.compare(Report{Rows: rows}); len(p.Differences) != 1 || strings.Contains(p.Differences[0].What, "update") {
		t.Errorf("before it is sent: %+v", p.Differences)
	}
	s.attempt(2, sandbox.Fault{})
	if p := s.compare(Report{Rows: rows}); len(p.Differences) != 1 || !strings.Contains(p.Differences[0].What, "may be an update, as 2 records") {
		t.Errorf("%+v", p.Differences)
	}
}

// TestReportAgainstSettled: a report that contradicts what is settled here is told of.
func TestReportAgainstSettled(t *testing.T) {
	s := newSystem(t)
	s.unknowns("a", "b", "c", "d")
	s.set(`UPDATE outbox_refund SET state = 'accepted' WHERE refund_id IN ('a', 'b', 'd')`)
	s.set(`UPDATE outbox_refund SET state = 'rejected' WHERE refund_id = 'c'`)
	s.enqueue(refund("e", 5))
	p := s.compare(Report{Until: time.Now(), Rows: []ReportRow{row(1, "acct", "b", 6, "EUR"), row(2, "acct", "c", 5, "EUR"), row(3, "acct", "d", 5, "EUR"), row(4, "acct", "e", 5, "EUR")}})
	const want = "0 1 accepted here, and the report does not have it; 1 2 amount or currency differs: 6 EUR there, 5 EUR here; " +
		"2 3 the service has it, and it is rejected here"
	if told(p) != want || changes(p) != 1 || p.Agreed != 1 {
		t.Errorf("%+v", p)
	}
	// A pending one was sent before a backup was restored.
	s.apply(p)
	s.check("accepted accepted rejected accepted accepted")
}

// TestReportAccounts: one refund_id of two accounts are two refunds.
func TestReportAccounts(t *testing.T) {
	s := newSystem(t)
	s.unknowns("a")
	s.set(`UPDATE outbox_refund SET account = 'other'`)
	s.unknowns("a")
	p := s.compare(Report{Until: time.Now(), Rows: []ReportRow{row(1, "other", "a", 5, "EUR")}})
	if len(p.Differences) != 0 {
		t.Errorf("%+v", p)
	}
	s.apply(p)
	s.check("accepted absent")
}

// TestReportUnusable: a report that would make everything absent.
func TestReportUnusable(t *testing.T) {
	s := newSystem(t)
	for _, r := range []Report{{Until: time.Now()}, {Until: time.Now().Add(time.Hour), Rows: []ReportRow{row(1, "acct", "a", 5, "EUR")}}} {
		if _, err := s.box.Compare(t.Context(), r); err == nil {
			t.Errorf("%+v is taken", r)
		}
	}
}

// TestPlanIsOld: what has changed since the comparison is named, and stays as it is. The
// rest of the plan is carried out.
func TestPlanIsOld(t *testing.T) {
	s := newSystem(t)
	s.unknowns("a", "b", "c")
	p := s.compare(Report{Until: time.Now(), Rows: []ReportRow{row(1, "acct", "a", 5, "EUR"), row(2, "acct", "c", 5, "EUR")}})
	s.set(`UPDATE outbox_refund SET attempts = 2 WHERE refund_id = 'b'`)
	s.set(`UPDATE outbox_refund SET state = 'rejected' WHERE refund_id = 'c'`)
	n, err := p.Apply(t.Context(), "ann", "")
	if n != 1 || !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "row 2: ") || !strings.Contains(err.Error(), "row 3: ") {
		t.Errorf("%d, %v", n, err)
	}
	s.check("accepted unknown rejected")
}
