//go:build unix

package outbox

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestUpgrade: tables of earlier versions, with a refund in each state, are migrated, and
// the work goes on with what is in them.
func TestUpgrade(t *testing.T) {
	for _, version := range []string{"version1", "version4"} {
		eachDatabase(t, func(t *testing.T, database string) { testUpgrade(t, database, version) })
	}
}

func testUpgrade(t *testing.T, database, version string) {
	file := version + "_sqlite.sql"
	if strings.HasPrefix(database, "postgres:") {
		file = version + "_postgres.sql"
	}
	dump, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	box, db, err := openDatabase(database)
	if err == nil {
		_, err = db.ExecContext(t.Context(), string(dump))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, box)
	const everything = `SELECT refund_id || ' ' || state || ' ' || attempts || ' ' || content || ' ' || reason || ' ' || request_id || ' ' || sent_at FROM outbox_refund ORDER BY id`
	const decisions = `SELECT refund || who || what || note FROM outbox_decision ORDER BY id`
	before, decided := s.column(everything), s.column(decisions)
	if err := box.Run(t.Context(), s.w.Config); !errors.Is(err, ErrTables) {
		t.Errorf("before Migrate: %v", err)
	}
	other, _, err := openDatabase(database)
	if err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error)
	for _, b := range []*Outbox{box, other} { // they take turns
		go func() { migrated <- b.Migrate(t.Context()) }()
	}
	if err := errors.Join(<-migrated, <-migrated); err != nil {
		t.Fatal(err)
	}
	if version == "version1" { // which did not know that a refusal after a doubt proves nothing
		before = strings.Replace(before, "f rejected", "f unknown", 1)
	}
	if after := s.column(everything); after != before || s.column(decisions) != decided {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	s.w.Drain = true
	if err := box.Run(t.Context(), s.w.Config); err != nil {
		t.Fatal(err)
	}
	if version == "version1" {
		s.check("accepted unknown accepted rejected unknown unknown")
		return
	}
	s.check("accepted accepted unknown accepted rejected unknown absent unknown")
	if s.requests() != 2 {
		t.Errorf("%d requests", s.requests())
	}
	status, err := box.Status(t.Context())
	if err != nil || status.LateResponses != 1 || status.Unknown != 3 {
		t.Errorf("%+v, %v", status, err)
	}
	// A report of the time before counts: a later one of the same rows is a second one.
	plan := s.compare(Report{Until: parseTime("2026-01-03T00:00:00.000Z"), Resubmit: true, Rows: []ReportRow{row(1, "acct", "u1", 6, "EUR")}})
	if len(plan.Found) != 1 || len(plan.SendAgain) != 1 || plan.SendAgain[0].RefundID != "b1" {
		t.Errorf("%+v", plan)
	}
	if e, err := s.place(Item{AccountID: "acct", Refund: refund("a1", 4)}); err != nil || e.New || e.Row != 4 {
		t.Errorf("%+v, %v", e, err)
	}
	// A newer program's tables are left alone.
	s.set(`INSERT INTO outbox_migration (version_id, is_applied) VALUES (99, 'true')`)
	box.checked.Store(false)
	if err := box.Run(t.Context(), s.w.Config); !errors.Is(err, ErrTables) || !strings.Contains(err.Error(), "99") {
		t.Error(err)
	}
}
