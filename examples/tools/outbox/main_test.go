package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// TestMain is the program itself, where the demo starts it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test") {
		main()
	}
	os.Exit(m.Run())
}

// A system is a service, a database and the program between them.
type system struct {
	t      *testing.T
	engine *sandbox.Engine
	env    map[string]string
	file   string
}

func newSystem(t *testing.T) *system {
	t.Helper()
	engine := sandbox.New()
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s := &system{t, engine, map[string]string{"CARDDATA_REFUND_URL": server.URL(), "CARDDATA_ACCOUNT_ID": "acct"},
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

// age makes all requests old.
func (s *system) age() {
	s.t.Helper()
	c := &command{file: s.file, env: func(string) string { return "" }}
	db, err := c.open(s.t.Context(), false)
	if err == nil {
		defer db.close()
		err = db.age(s.t.Context())
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
		{map[string]string{"CARDDATA_ACCOUNT_ID": ""}, "-in or the account is missing", []string{"enqueue", "-in", in}},
		{nil, "no such file", []string{"enqueue", "-in", in + "x"}},
		{nil, "-as names no decision", []string{"resolve", "1"}},
		{nil, "which rows", []string{"resolve", "-as", "accepted"}},
		{nil, "a row is a number", []string{"resolve", "-as", "accepted", "x"}},
		{nil, "-resubmit needs -complete-until", []string{"compare", "-report", s.write("report.csv", "account,refund_id,amount,currency\n"), "-resubmit"}},
		{nil, "no column account", []string{"compare", "-report", in}},
		{nil, "the report cannot be used", []string{"compare", "-report", s.write("broken.csv", "account,refund_id,amount,currency\nacct,\"b,2,EUR\n")}},
	} {
		env := s.env
		s.env = maps.Clone(env)
		maps.Copy(s.env, test.env)
		s.holds(s.run(2, test.args[0], test.args[1:]...), test.want)
		s.env = env
	}
	for _, command := range []string{"demo", "migrate", "enqueue", "work", "status", "list", "compare", "resolve", "log"} {
		s.holds(s.run(0, command, "-h"), "^usage: outbox "+command)
	}
	s.file += "x"
	s.holds(s.run(2, "work"), "there is no database")
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
	s.engine.Script(sandbox.Refunds, sandbox.Fault{}, sandbox.Fault{Status: 422, Body: `{"error":{"code":"amount_too_high","message":"canary 4111111111111111"}}`}, sandbox.Fault{DropAfter: true})
	record := `{"refund_id":"%s","amount":10150,"currency":"USD","additional_data":{"description":"canary","metadata":{"n":12345678901234567890.10}}}`
	out := s.enqueue(3, "", fmt.Sprintf(record, "a"), " ", fmt.Sprintf(record, "b"), fmt.Sprintf(record, "c"), fmt.Sprintf(record, "a"),
		`{"refund_id":"a","amount":5}`, `{"refund_id":"d","amount":1.5}`, `{"refund_id":"d","Amount":5}`, `{"refund_id":"d","amount":1,"amount":2}`, `{"amount":1}`, `canary`, `null`)
	s.holds(out, "line 7: .* another amount", "line 8: .*amount", "line 9: .*Amount", "line 10: .*duplicate.*amount", "line 11: .*refund_id is missing",
		"line 12: .* not one JSON object", "line 13: ", "enqueued 3; 1 were there before; 7 lines refused")
	s.run(0, "work", "-drain", "-concurrency", "1")
	s.holds(s.run(3, "status"), "accepted +1 *\n", "rejected +1 *\n", "unknown +1 *\n", "a worker lives +false", "LOOK: unknown", "rejected +422 amount_too_high +1")
	s.holds(s.run(3, "status", "-json"), `"accepted":1,"rejected":1,"unknown":1`)
	if got := s.engine.Refunds(); len(got) != 2 || !strings.Contains(string(got[0].Body), "12345678901234567890.10") {
		t.Errorf("%s", got)
	}
}

// TestNoSilence: a command that decides nothing, or less than it was told, says which
// rows and why, and ends with 1.
func TestNoSilence(t *testing.T) {
	s := newSystem(t)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{DropBefore: true}, sandbox.Fault{DropBefore: true})
	s.enqueue(0, `{"refund_id":"a"}`, `{"refund_id":"b"}`)
	s.run(0, "work", "-drain", "-concurrency", "1")
	s.enqueue(0, `{"refund_id":"c"}`)
	for _, test := range []struct {
		want string
		args []string
	}{
		{"row 99: there is no such refund", []string{"-as", "accepted", "99"}},
		{"row 3: it is pending, and the decision is about .unknown absent.", []string{"-as", "accepted", "3"}},
		{"row 1: it is unknown, and the decision is about .rejected.", []string{"-as", "resubmit", "-state", "rejected", "1"}},
		{"row 3: .* pending, which cannot be", []string{"-as", "accepted", "-state", "pending", "3"}},
		{"row 1: its request can still leave until 2", []string{"-as", "not-recorded", "1"}},
		{"row 1: .* no late response", []string{"-as", "seen", "1"}},
	} {
		s.holds(s.run(1, "resolve", test.args...), test.want, "0 refunds")
	}
	s.age()
	s.holds(s.run(1, "resolve", "-as", "accepted", "1", "3", "99"), "1 refunds: accepted", "row 3: ", "row 99: ")
	s.run(0, "resolve", "-as", "closed", "-state", "pending", "3")
	s.run(0, "resolve", "-as", "accepted", "-note", "of 4111111111111111", "2")
	s.holds(s.run(0, "log"), "accepted +2 .* of 411111", "closed +3 ")
	s.run(0, "status")
}

// TestReports: nothing is changed without -apply, and a report is later than another by its
// own time, and not by its bytes.
func TestReports(t *testing.T) {
	s := newSystem(t)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{DropAfter: true}, sandbox.Fault{DropBefore: true})
	s.enqueue(0, `{"refund_id":"a","amount":1,"currency":"EUR"}`, `{"refund_id":"b","amount":2,"currency":"EUR"}`)
	s.run(0, "work", "-drain", "-concurrency", "1")
	s.age()
	s.holds(s.run(0, "list", "-csv"), "\n1,unknown,acct,a,1,EUR,1,", "\n2,unknown,acct,b,2,EUR,1,")
	report := s.write("report.csv", "\ufeffx,currency,account,refund_id,amount\r\nx,EUR,acct,a,1\r\nx,EUR,acct,z,\"1,5\"\r\n")
	now := time.Now()
	compare := func(code int, ago time.Duration, more ...string) string {
		t.Helper()
		return s.run(code, "compare", append(more, "-report", report, "-complete-until", now.Add(-ago).Format(time.RFC3339))...)
	}
	s.holds(compare(3, 20*time.Minute), "to become accepted +1 ", "to become absent +1 ", "differences +1 ", "line 3 .*amount", "nothing is changed")
	s.holds(s.run(0, "list"), "unknown +acct +a ", "unknown +acct +b ")
	s.holds(compare(3, 20*time.Minute, "-apply"), "2 refunds changed")
	s.holds(compare(3, 20*time.Minute, "-apply", "-resubmit"), "staying absent +1  this report is not later", "0 refunds changed")
	s.holds(compare(3, 10*time.Minute, "-apply", "-resubmit"), "to be sent again +1 ", "1 refunds changed")
	s.run(0, "work", "-drain")
	s.run(0, "status")
}

func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds: run without -short")
	}
	var out strings.Builder
	if code := run(t.Context(), []string{"demo"}, &out, &out, os.Getenv); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &out)
	}
	s := &system{t: t}
	s.holds(out.String(), "(?m)(^killed the worker\n){3}", "to be sent again +[1-9]", `report 3 of the sandbox\naccepted here already +1[0-9]{3}\b`)
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
		args := strings.Fields(c[1])
		s.run(0, args[0], args[1:]...)
	}
	if n := len(s.engine.Refunds()); n != 1 || len(commands) < 7 {
		t.Errorf("%d commands, %d refunds recorded", len(commands), n)
	}
}
