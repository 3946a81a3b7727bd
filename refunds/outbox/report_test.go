package outbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func row(line int, account, id string, amount int64, currency string) ReportRow {
	return ReportRow{Line: line, AccountID: account, RefundID: id, Amount: &amount, Currency: currency}
}

// unknowns makes refunds with the ids unknown, an hour ago.
func (s *system) unknowns(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.enqueue(refund(id, 5))
		s.set(`UPDATE outbox_refund SET state = 'unknown', attempts = 1, enqueued_at = $1, sent_at = $1 WHERE state = 'pending'`,
			timeText(time.Now().Add(-time.Hour)))
	}
}

func (s *system) compare(r Report) *Comparison {
	s.t.Helper()
	c, err := s.box.Compare(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// summary is what a comparison says, with the rows that it names.
func (c *Comparison) summary() string {
	var words []string
	for _, e := range c.Found {
		words = append(words, fmt.Sprint("found ", e.Row))
	}
	for _, e := range c.NotFound {
		words = append(words, fmt.Sprint("not found ", e.Row))
	}
	words = append(words, fmt.Sprintf("%d agreed, %d not covered", c.Agreed, c.NotCovered))
	for _, d := range c.Differences {
		words = append(words, fmt.Sprintf("%d %d %s", d.Line, d.Row, d.What))
	}
	return strings.Join(words, "; ")
}

// TestReport: what a report has is found, and what it does not have is not found if it is
// complete for when that was sent.
func TestReport(t *testing.T) {
	s := newSystem(t)
	s.unknowns("a", "b")
	rows := []ReportRow{row(2, "acct", "a", 5, "EUR")}
	now := time.Now()
	for _, test := range []struct {
		from, until time.Time
		want        string
	}{
		{time.Time{}, now, "found 1; not found 2; 0 agreed, 0 not covered"},
		{now.Add(-61 * time.Minute), now.Add(-58 * time.Minute), "found 1; not found 2; 0 agreed, 0 not covered"},
		{now.Add(-59 * time.Minute), now, "found 1; 0 agreed, 1 not covered"},
		{time.Time{}, now.Add(-time.Hour), "found 1; 0 agreed, 1 not covered"},
		{time.Time{}, time.Time{}, "found 1; 0 agreed, 1 not covered"},
	} {
		if got := s.compare(Report{Rows: rows, From: test.from, Until: test.until}).summary(); got != test.want {
			t.Errorf("from %v until %v: %s, want %s", test.from, test.until, got, test.want)
		}
	}
	s.check("unknown unknown")
	for _, unusable := range []Report{{Until: now}, {Until: now.Add(time.Hour), Rows: rows}} {
		if _, err := s.box.Compare(t.Context(), unusable); err == nil {
			t.Errorf("%+v is taken", unusable)
		}
	}
}

// TestReportDifferences: every row that does not fit is told, and of its refund_id nothing is
// said to be missing.
func TestReportDifferences(t *testing.T) {
	for _, test := range []struct {
		name string
		rows []ReportRow
		want string
	}{
		{"amount", []ReportRow{row(2, "acct", "a", 6, "EUR")}, "1 agreed, 0 not covered; 2 1 amount or currency differs: 6 EUR there, 5 EUR here"},
		{"no amount", []ReportRow{{Line: 2, AccountID: "acct", RefundID: "a", Currency: "EUR"}}, "1 agreed, 0 not covered; 2 1 amount or currency differs: unset EUR there, 5 EUR here"},
		{"currency", []ReportRow{row(2, "acct", "a", 5, "USD")}, "1 agreed, 0 not covered; 2 1 amount or currency differs: 5 USD there, 5 EUR here"},
		{"account", []ReportRow{row(2, "other", "a", 5, "EUR")}, "1 agreed, 1 not covered; 2 0 no such refund of this account here"},
		{"unreadable", []ReportRow{{Line: 2, RefundID: "a", Err: errors.New("amount is no JSON")}}, "1 agreed, 1 not covered; 2 0 amount is no JSON"},
		{"another id", []ReportRow{row(2, "acct", "z", 5, "EUR")}, "not found 1; 1 agreed, 0 not covered; 2 0 no such refund of this account here"},
		{"twice", []ReportRow{row(2, "acct", "a", 5, "EUR"), row(3, "acct", "a", 6, "EUR")},
			"found 1; 1 agreed, 0 not covered; 3 1 repeats line 2: the service has an update of the refund, or has it twice"},
	} {
		s := newSystem(t)
		s.unknowns("a", "b")
		s.set(`UPDATE outbox_refund SET state = 'accepted' WHERE refund_id = 'b'`)
		got := s.compare(Report{Until: time.Now(), Rows: append(test.rows, row(9, "acct", "b", 5, "EUR"))}).summary()
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// TestReportOfOneOfTwo: of two accepted records of a refund_id, the report may have either.
func TestReportOfOneOfTwo(t *testing.T) {
	s := newSystem(t)
	s.unknowns("a")
	s.enqueue(refund("a", 6)) // an update
	s.set(`UPDATE outbox_refund SET state = 'accepted', attempts = 1`)
	for _, amount := range []int64{5, 6} {
		if got, want := s.compare(Report{Rows: []ReportRow{row(2, "acct", "a", amount, "EUR")}}).summary(), "1 agreed, 0 not covered"; got != want {
			t.Errorf("%d: %s, want %s", amount, got, want)
		}
	}
}

// TestReportAgainstSettled: a report that contradicts what is settled here is told of. What
// is pending was sent before a backup was restored.
func TestReportAgainstSettled(t *testing.T) {
	s := newSystem(t)
	s.unknowns("a", "b", "c", "d")
	s.set(`UPDATE outbox_refund SET state = 'accepted' WHERE refund_id IN ('a', 'b', 'd')`)
	s.set(`UPDATE outbox_refund SET state = 'rejected' WHERE refund_id = 'c'`)
	s.enqueue(refund("e", 5))
	c := s.compare(Report{Until: time.Now(), Rows: []ReportRow{row(1, "acct", "b", 6, "EUR"), row(2, "acct", "c", 5, "EUR"), row(3, "acct", "d", 5, "EUR"), row(4, "acct", "e", 5, "EUR")}})
	const want = "found 5; 1 agreed, 0 not covered; 0 1 accepted here, and the report does not have it; 1 2 amount or currency differs: 6 EUR there, 5 EUR here; " +
		"2 3 the service has it, and it is rejected here"
	if c.summary() != want {
		t.Errorf("%s, want %s", c.summary(), want)
	}
	if n, err := s.box.Decide(t.Context(), c.Found, Recorded, "ann", "report"); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	s.check("accepted accepted rejected accepted accepted")
	if got := s.column(`SELECT refund || ' ' || who || ' ' || what || ' ' || note FROM outbox_decision`); got != "5 ann accepted report" {
		t.Errorf("the log says %s", got)
	}
}

// TestReportGroups: one refund_id of two accounts are two refunds, and an update is told from
// an accepted refund by its amount alone.
func TestReportGroups(t *testing.T) {
	s := newSystem(t)
	s.unknowns("a")
	s.set(`UPDATE outbox_refund SET account = 'other', state = 'accepted'`)
	s.unknowns("a")
	rows := []ReportRow{row(1, "other", "a", 5, "EUR")}
	if got := s.compare(Report{Until: time.Now(), Rows: rows}).summary(); got != "not found 2; 1 agreed, 0 not covered" {
		t.Error(got)
	}
	s.set(`UPDATE outbox_refund SET account = 'other', digest = 'of the update', number = 2 WHERE id = 2`)
	const same = "1 agreed, 0 not covered; 0 2 another record of the refund_id is accepted: the report cannot tell them apart"
	if got := s.compare(Report{Until: time.Now(), Rows: rows}).summary(); got != same {
		t.Error(got)
	}
	s.set(`UPDATE outbox_refund SET amount = 4 WHERE id = 1`)
	if got := s.compare(Report{Until: time.Now(), Rows: rows}).summary(); got != "found 2; 0 agreed, 0 not covered" {
		t.Error(got)
	}
}

// TestDecideOld: what has changed since it was listed is named, and stays as it is. The rest
// is decided.
func TestDecideOld(t *testing.T) {
	s := newSystem(t)
	s.unknowns("a", "b", "c")
	chosen, err := s.box.List(t.Context(), Unknown)
	if err != nil {
		t.Fatal(err)
	}
	s.set(`UPDATE outbox_refund SET attempts = 2 WHERE refund_id = 'b'`)
	s.set(`UPDATE outbox_refund SET state = 'rejected' WHERE refund_id = 'c'`)
	n, err := s.box.Decide(t.Context(), chosen, Recorded, "ann", "")
	if n != 1 || !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "row 2: ") || !strings.Contains(err.Error(), "row 3: ") {
		t.Errorf("%d, %v", n, err)
	}
	s.check("accepted unknown rejected")
}
