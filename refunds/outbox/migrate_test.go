//go:build unix

package outbox

import (
	"errors"
	"strings"
	"testing"
)

// try calls methods that need the tables. Their errors are of all of them.
func (s *system) try() []error {
	_, enqueued := s.place(Item{AccountID: "acct", Refund: refund("a", 5)})
	_, status := s.box.Status(s.t.Context())
	return []error{status, s.box.Run(s.t.Context(), s.w.Config), enqueued}
}

// TestMigrate: without the tables, everything says so. Two programs that migrate take turns,
// and an older program leaves a newer one's tables alone.
func TestMigrate(t *testing.T) {
	eachDatabase(t, func(t *testing.T, database string) {
		box, _, err := openDatabase(database)
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, box)
		s.w.Drain = true
		for _, err := range s.try() {
			if !errors.Is(err, ErrTables) {
				t.Errorf("before Migrate: %v", err)
			}
		}
		programs := 1
		if box.schema != "" { // in SQLite they take no turns
			programs = 3
		}
		migrated := make(chan error)
		for range programs {
			go func() { migrated <- box.Migrate(t.Context()) }()
		}
		for range programs {
			if err := <-migrated; err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(s.try()...); err != nil {
			t.Error(err)
		}
		if err := box.Migrate(t.Context()); err != nil {
			t.Errorf("again: %v", err)
		}
		s.check("accepted")
		// A database of the version before gets what is new, and keeps what it has.
		s.set(`DROP TABLE outbox_question`)
		s.set(`DROP INDEX outbox_refund_number`)
		for _, column := range []string{"number", "next_at", "status", "content_type", "body"} {
			s.set(`ALTER TABLE outbox_refund DROP COLUMN ` + column)
		}
		s.set(`UPDATE outbox_version SET own = 1`)
		box.tablesChecked.Store(false)
		box.usable.Store(false)
		if _, err := box.Status(t.Context()); !errors.Is(err, ErrTables) {
			t.Errorf("an older version: %v", err)
		}
		if err := box.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.check("accepted")
		s.set(`SELECT 1 FROM outbox_question`)
		if number := s.column(`SELECT CAST(number AS TEXT) FROM outbox_refund`); number != "1" {
			t.Errorf("the numbers are %s", number)
		}
		s.set(`UPDATE outbox_version SET own = 99`)
		box.tablesChecked.Store(false)
		box.usable.Store(false)
		for _, err := range append(s.try()[:2], box.Migrate(t.Context())) {
			if !errors.Is(err, ErrTables) || !strings.Contains(err.Error(), "99") {
				t.Errorf("a newer version: %v", err)
			}
		}
	})
}
