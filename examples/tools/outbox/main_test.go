package main

import (
	"database/sql"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// A system is a service, a database and the program between them.
type system struct {
	t    *testing.T
	fake *sandbox.Fake // of the service
	env  map[string]string
	file string
}

func newSystem(t *testing.T) *system {
	t.Helper()
	fake := sandbox.NewFake(t, sandbox.Refunds)
	s := &system{t, fake, map[string]string{"CARDDATA_REFUND_URL": fake.URL(), "CARDDATA_ACCOUNT_ID": "acct"},
		filepath.Join(t.TempDir(), "outbox.db")}
	s.run(0, "migrate")
	return s
}

// run runs a command, and returns what it printed.
func (s *system) run(code int, name string, args ...string) string {
	s.t.Helper()
	var out strings.Builder
	args = append([]string{name, "-db", s.file}, args...)
	if got := run(s.t.Context(), args, &out, &out, func(name string) string { return s.env[name] }); got != code {
		s.t.Fatalf("outbox %s: exit code %d, want %d\n%s", args, got, code, &out)
	}
	if strings.Contains(out.String(), "canary") || strings.Contains(out.String(), "4111111111111111") {
		s.t.Errorf("outbox %s: printed\n%s", args, &out)
	}
	return out.String()
}

func (s *system) write(name, text string) string {
	s.t.Helper()
	name = filepath.Join(s.t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return name
}

func (s *system) enqueue(code int, lines ...string) string {
	s.t.Helper()
	return s.run(code, "enqueue", "-in", s.write("in.jsonl", strings.Join(lines, "\n")))
}

// age makes all refunds and their requests old. A worker leaves a young refund to the Submit that
// may have booked it, for 20 seconds.
func (s *system) age(to time.Time) {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.file)
	if err == nil {
		defer db.Close()
		_, err = db.Exec(`UPDATE outbox_refund SET enqueued_at = ?1, sent_at = CASE sent_at WHEN '' THEN '' ELSE ?1 END`, to.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) holds(text string, want ...string) {
	s.t.Helper()
	for _, w := range want {
		if !regexp.MustCompile(w).MatchString(text) {
			s.t.Errorf("no %q in\n%s", w, text)
		}
	}
}

func TestUsage(t *testing.T) {
	s := newSystem(t)
	in := s.write("in.jsonl", "{}")
	for _, test := range []struct {
		env  map[string]string
		want string
		args []string
	}{
		{nil, "no such command", []string{"4111111111111111"}},
		{nil, "flag provided but not defined: -411111", []string{"work", "-4111111111111111"}},
		{nil, "no arguments", []string{"work", "x"}},
		{nil, "-concurrency must be", []string{"work", "-concurrency", "0"}},
		{map[string]string{"CARDDATA_REFUND_URL": ""}, "CARDDATA_REFUND_URL is missing", []string{"work"}},
		{map[string]string{"CARDDATA_REFUND_URL": "http://refund.example.com"}, "http", []string{"work"}},
		{map[string]string{"DATABASE_URL": "postgres://u:canary@h/d"}, "both -db and DATABASE_URL", []string{"status"}},
		{map[string]string{"CARDDATA_ACCOUNT_ID": ""}, "the account is missing", []string{"enqueue", "-in", in}},
		{nil, "outbox enqueue FILE", []string{"enqueue"}},
		{nil, "more than one input file", []string{"enqueue", "-in", in, in}},
		{nil, "-find-out is no URL", []string{"work", "-find-out", "x"}},
		{nil, "needs -find-out", []string{"work", "-resubmit-not-recorded"}},
		{nil, "no such file", []string{"enqueue", "-in", in + "x"}},
		{nil, "-as names no decision", []string{"resolve", "1"}},
		{nil, "which rows", []string{"resolve", "-as", "accepted"}},
		{nil, "a row is a number", []string{"resolve", "-as", "accepted", "x"}},
		{nil, "no column account", []string{"compare", "-report", in}},
		{nil, "the report cannot be used", []string{"compare", "-report", s.write("broken.csv", "account,refund_id,amount,currency\nacct,\"b,2,EUR\n")}},
	} {
		env := s.env
		s.env = maps.Clone(env)
		maps.Copy(s.env, test.env)
		s.holds(s.run(2, test.args[0], test.args[1:]...), test.want)
		s.env = env
	}
	for _, command := range []string{"migrate", "enqueue", "work", "status", "list", "compare", "resolve"} {
		s.holds(s.run(0, command, "-h"), "^usage: outbox "+command)
	}
	s.file += "x"
	for _, args := range [][]string{{"work"}, {"enqueue", in}, {"status"}} {
		s.holds(s.run(2, args[0], args[1:]...), `there is no database .*: create it by "outbox migrate -db .*outbox.dbx"`)
	}
	s.run(3, "enqueue", "-migrate", in)
	s.file += "y"
	s.run(0, "work", "-migrate", "-drain")
}

// TestFindOut: an unknown refund finds its own end.
func TestFindOut(t *testing.T) {
	s := newSystem(t)
	s.fake.Script(sandbox.Fault{Drop: true, Process: true}, sandbox.Fault{Drop: true}, sandbox.Fault{Drop: true})
	s.enqueue(0, `{"refund_id":"a&b"}`, `{"refund_id":"c"}`, `{"refund_id":"d"}`)
	s.run(0, "work", "-drain", "-concurrency", "1")
	ledger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch id := r.URL.Query().Get("refund_id"); {
		case r.URL.Query().Get("account") != "acct" || r.URL.Query().Get("key") != "1":
			w.WriteHeader(http.StatusBadRequest)
		case id == "d":
			io.WriteString(w, `{"recorded":null}`)
		default:
			fmt.Fprintf(w, `{"recorded":%t}`, id == "a&b")
		}
	}))
	defer ledger.Close()
	s.age(time.Now().Add(-time.Hour))
	s.run(0, "work", "-drain", "-find-out", ledger.URL+"/?key=1", "-resubmit-not-recorded")
	s.holds(s.run(3, "status"), "accepted +2 *\n", "unknown +1 *\n")
	s.holds(s.run(0, "list"), "unknown,acct,d,")
}

// TestNoDatabase: a database that does not answer is no mistake of usage or configuration.
func TestNoDatabase(t *testing.T) {
	s := newSystem(t)
	s.file = ""
	s.env["DATABASE_URL"] = "postgres://u:canary@127.0.0.1:1/d"
	s.holds(s.run(1, "status"), "failed to connect")
}

// TestOutcomes: a bad line is refused, and each refund ends by what the service did.
func TestOutcomes(t *testing.T) {
	s := newSystem(t)
	s.fake.Script(sandbox.Fault{}, sandbox.Fault{Status: 422, Body: new(`{"error":{"code":"amount_too_high","message":"canary 4111111111111111"}}`)}, sandbox.Fault{Drop: true, Process: true})
	record := `{"refund_id":"%s","amount":10150,"currency":"USD","additional_data":{"description":"canary","metadata":{"n":12345678901234567890.10}}}`
	out := s.enqueue(3, "", fmt.Sprintf(record, "a"), " ", fmt.Sprintf(record, "b"), fmt.Sprintf(record, "c"), fmt.Sprintf(record, "a"),
		`{"refund_id":"a","amount":5}`, `{"refund_id":"d","amount":1.5}`, `{"refund_id":"d","amuont":5}`, `{"refund_id":"d"}{}`, `{"amount":1}`, `canary`, `null`)
	s.holds(out, "line 7: .* another amount", "line 8: .*amount", "line 9: .*amuont", "line 10: .* not one JSON object", "line 11: .*no RefundID",
		"line 12: .* not one JSON object", "line 13: ", "enqueued 3; 1 were there before; 7 lines refused")
	s.run(0, "work", "-drain", "-concurrency", "1")
	s.holds(s.run(3, "status"), "accepted +1 *\n", "rejected +1 *\n", "unknown +1 *\n", "LOOK: unknown", "why rejected +1 +422 amount_too_high")
	if got := s.fake.Refunds(); len(got) != 2 || !strings.Contains(string(got[0].Body), "12345678901234567890.10") {
		t.Errorf("%s", got)
	}
}

// TestNoSilence: a command that decides nothing, or less than it was told, says which
// rows and why, and ends with 1.
func TestNoSilence(t *testing.T) {
	s := newSystem(t)
	s.fake.Script(sandbox.Fault{Drop: true}, sandbox.Fault{Drop: true})
	s.enqueue(0, `{"refund_id":"a"}`, `{"refund_id":"b"}`)
	s.run(0, "work", "-drain", "-concurrency", "1")
	s.enqueue(0, `{"refund_id":"c"}`)
	for _, test := range []struct {
		want string
		args []string
	}{
		{"row 99: it is not unknown", []string{"-as", "accepted", "99"}},
		{"row 3: it is not unknown", []string{"-as", "accepted", "3"}},
		{"row 1: it is not rejected", []string{"-as", "resubmit", "-state", "rejected", "1"}},
		{"row 3: .* no such decision", []string{"-as", "resubmit", "-state", "pending", "3"}},
		{"row 1: its request can still leave until 2", []string{"-as", "resubmit", "1"}},
	} {
		s.holds(s.run(1, "resolve", test.args...), test.want, "0 refunds")
	}
	s.age(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s.holds(s.run(1, "resolve", "-as", "accepted", "1", "3", "99"), "1 refunds: accepted", "row 3: ", "row 99: ")
	s.run(0, "resolve", "-as", "closed", "-state", "pending", "3")
	s.run(0, "resolve", "-as", "accepted", "-note", "seen in their portal", "2")
	s.run(0, "status")
}

// TestReports: nothing is changed without -apply, and what was not found is sent again by its
// rows alone.
func TestReports(t *testing.T) {
	s := newSystem(t)
	s.fake.Script(sandbox.Fault{Drop: true, Process: true}, sandbox.Fault{Drop: true})
	s.enqueue(0, `{"refund_id":"a","amount":1,"currency":"EUR"}`, `{"refund_id":"b","amount":2,"currency":"EUR"}`)
	s.run(0, "work", "-drain", "-concurrency", "1")
	s.age(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s.holds(s.run(0, "list"), "\n1,unknown,acct,a,1,EUR,1,", "\n2,unknown,acct,b,2,EUR,1,")
	report := s.write("report.csv", "\ufeffx,currency,account,refund_id,amount\r\nx,EUR,acct,a,1\r\nx,EUR,acct,z,\"1,5\"\r\n")
	compare := func(more ...string) string {
		t.Helper()
		return s.run(3, "compare", append(more, "-report", report, "-complete-until", time.Now().Format(time.RFC3339))...)
	}
	for range 2 {
		s.holds(compare(), "found +1 ", "not found +1 ", "differences +1 ", "difference: line 3, .*amount", "outbox resolve -as resubmit 2\n")
	}
	s.holds(compare("-apply"), "1 refunds accepted")
	s.holds(compare("-apply"), "accepted here already +1", "not found +1 ", "0 refunds accepted")
	s.run(0, "resolve", "-as", "resubmit", "2")
	s.run(0, "work", "-drain")
	s.run(0, "status")
}

// TestReadmeCommands runs the commands of the README, each as it is written.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newSystem(t)
	t.Chdir(t.TempDir())
	s.file = "outbox.db"
	for name, text := range map[string]string{
		"refunds.jsonl": `{"refund_id":"rf_1","amount":10150,"currency":"USD"}`,
		"report.csv":    "account,refund_id,amount,currency\nacct,rf_1,10150,USD\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := regexp.MustCompile(`(?m)^ *\./outbox ([^#>\n]*)`).FindAllStringSubmatch(string(readme), -1)
	for _, c := range commands {
		args := strings.Fields(os.Expand(c[1], func(name string) string { return s.env[name] }))
		s.run(0, args[0], args[1:]...)
	}
	if n := len(s.fake.Refunds()); n != 1 || len(commands) < 7 {
		t.Errorf("%d commands, %d refunds recorded", len(commands), n)
	}
}
