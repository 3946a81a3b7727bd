//go:build unix

package outbox

import (
	"database/sql"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// ownTable reads the statements of the Example of refunds.WithBeforeSend, whose module has no database.
func ownTable(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../before_send_example_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	statements := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.ValueSpec); ok && len(c.Values) == 1 {
			if text, ok := c.Values[0].(*ast.BasicLit); ok {
				statements[c.Names[0].Name], _ = strconv.Unquote(text.Value)
			}
		}
		return true
	})
	return statements
}

// TestOwnTable: with a table of one's own, of two calls one begins, a late response is better than
// doubt, and nothing is sent again before somebody has settled it.
func TestOwnTable(t *testing.T) {
	statements := ownTable(t)
	eachDatabase(t, func(t *testing.T, database string) {
		_, db, err := openDatabase(database)
		if err == nil {
			_, err = db.ExecContext(t.Context(), statements["createTable"])
		}
		if err != nil {
			t.Fatal(err)
		}
		run := func(name string, args ...any) (changed int64, err error) {
			result, err := db.ExecContext(t.Context(), statements[name], args...)
			if err == nil {
				changed, err = result.RowsAffected()
			}
			return changed, err
		}
		begins := func(record, call string, at int, want bool) {
			t.Helper()
			n, err := run("beginAgain", "acct", "a", record, call, at)
			if err == nil && n == 0 {
				n, err = run("begin", "acct", "a", record, call, at)
			}
			if (n == 1 && err == nil) != want {
				t.Errorf("call %s begins: %d, %v", call, n, err)
			}
		}
		changes := func(name string, want int64, args ...any) {
			t.Helper()
			if n, err := run(name, args...); n != want || err != nil {
				t.Errorf("%s %v: %d rows, %v", name, args, n, err)
			}
		}
		is := func(want string) {
			t.Helper()
			var state string
			err := db.QueryRowContext(t.Context(), `SELECT state FROM refund WHERE account = $1 AND id = $2`, "acct", "a").Scan(&state)
			if err != nil && err != sql.ErrNoRows || state != want {
				t.Errorf("it is %q, want %q; %v", state, want, err)
			}
		}
		begins("{}", "1", 100, true)
		begins("{}", "2", 100, false)
		begins("{}", "1", 110, true) // a retry
		changes("end", 0, "acct", "a", "2", "done")
		changes("giveUp", 0, 110)
		changes("end", 1, "acct", "a", "1", "resubmit")
		begins(`{"another":1}`, "2", 120, false)
		begins("{}", "2", 120, true)
		changes("end", 0, "acct", "a", "1", "done")
		changes("giveUp", 1, 121)
		is("find out")
		begins("{}", "3", 200, false)
		changes("settle", 0, "acct", "a", "1", "resubmit", "{}")
		changes("settle", 1, "acct", "a", "2", "resubmit", `{"corrected":1}`)
		begins("{}", "3", 200, false)
		changes("end", 1, "acct", "a", "2", "done") // late
		is("done")
		begins(`{"corrected":1}`, "3", 200, false)
		changes("end", 0, "acct", "a", "2", "find out")
		is("done")
	})
}
