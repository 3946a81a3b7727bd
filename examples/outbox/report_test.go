package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/examples/internal/program"
)

// TestExport: what the service's operator needs to find the refunds, and nothing else
// of them.
func TestExport(t *testing.T) {
	s := newSystem(t)
	s.doubtful(`{"refund_id":"a","amount":5,"currency":"EUR","additional_data":{"description":"canary"}}`, `{"refund_id":"b"}`, `{"refund_id":"c"}`)
	s.set(`UPDATE outbox_refund SET request_id = 'req_1', reason = '503 busy', sent_at = '2026-01-01T00:00:00.000Z'`)
	s.set(`UPDATE outbox_refund SET state = 'absent' WHERE refund_id = 'b'`)
	s.set(`UPDATE outbox_refund SET state = 'accepted' WHERE refund_id = 'c'`)
	dir := t.TempDir()
	for name, want := range map[string]string{
		"x.csv": "account,refund_id,amount,currency,sent_at,request_id,state,evidence\n" +
			"acct,a,5,EUR,2026-01-01T00:00:00.000Z,req_1,unknown,503 busy\n" +
			"acct,b,,,2026-01-01T00:00:00.000Z,req_1,absent,503 busy\n",
		"x.json": `[["a",5],["b",null]]`,
	} {
		file := filepath.Join(dir, name)
		s.must(0, "resolve", "-export", file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := string(text)
		if name == "x.json" {
			var all []struct {
				RefundID string `json:"refund_id"`
				Amount   *int64 `json:"amount"`
			}
			if err := json.Unmarshal(text, &all); err != nil || len(all) != 2 {
				t.Fatalf("%s, %v", text, err)
			}
			got = fmt.Sprintf(`[["%s",%d],["%s",null]]`, all[0].RefundID, *all[0].Amount, all[1].RefundID)
		}
		if got != want || strings.Contains(string(text), "canary") {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, want)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		s.must(2, "resolve", "-export", file) // a file is not overwritten
	}
}

// TestImport: in each format, a report changes nothing before its preview is
// confirmed, and only what the preview showed.
func TestImport(t *testing.T) {
	for name, text := range map[string]string{
		"r.csv":   "\ufeffrecorded_at;account;refund_id;amount;currency\r\nx;acct;a;5;EUR\r\nx;acct;z;1,5;EUR\r\n",
		"r.tsv":   "account\trefund_id\tamount\tcurrency\nacct\ta\t5\tEUR\nacct\tz\t1,5\tEUR\n",
		"r.jsonl": "\ufeff{\"account\":\"acct\",\"refund_id\":\"a\",\"amount\":5,\"currency\":\"EUR\",\"status\":{\"x\":1}}\n{\"account\":\"acct\",\"refund_id\":\"z\",\"amount\":\"5\"}\n",
		"r.json":  "[\n{\"account\":\"acct\",\"refund_id\":\"a\",\"amount\":5,\"currency\":\"EUR\"},\n{\"account\":\"acct\",\"refund_id\":\"z\",\"amount\":1.5}]",
	} {
		s := newSystem(t)
		s.doubtful(`{"refund_id":"a","amount":5,"currency":"EUR"}`, `{"refund_id":"b"}`)
		s.age()
		args := []string{"-import", write(t, name, text), "-complete-until", time.Now().UTC().Format(time.RFC3339)}
		preview := s.must(exitAttention, "resolve", args...).Stdout
		if s.states() != "unknown unknown" || s.decisions() != "" {
			t.Errorf("%s: the preview changed something: %s", name, s.states())
		}
		for _, want := range []string{"to become accepted +1 ", "to become absent +1 ", "differences +1 ", "amount "} {
			if !regexp.MustCompile(want).MatchString(preview) {
				t.Errorf("%s: no %q in\n%s", name, want, preview)
			}
		}
		_, token, _ := strings.Cut(preview, "-expect ")
		token, _, _ = strings.Cut(token, "\n")
		args = append(args, "-expect", token)
		s.set(`UPDATE outbox_refund SET attempts = attempts + 1 WHERE refund_id = 'b'`)
		if got := s.must(1, "resolve", args...); !strings.Contains(got.Stderr, "have changed since the preview") {
			t.Errorf("%s: %+v", name, got)
		}
		s.set(`UPDATE outbox_refund SET attempts = attempts - 1 WHERE refund_id = 'b'`)
		s.must(exitAttention, "resolve", args...)
		if got := s.decisions(); s.states() != "accepted absent" || !strings.Contains(got, "1 tester: found (report ") || !strings.Contains(got, "2 tester: not found (report ") {
			t.Errorf("%s: %s, %s", name, s.states(), got)
		}
		s.must(1, "resolve", args...)
	}
}

// TestImportCutOff: of a report that cannot be read to its end, nothing is concluded.
func TestImportCutOff(t *testing.T) {
	s := newSystem(t)
	s.doubtful(`{"refund_id":"a"}`, `{"refund_id":"b"}`)
	s.age()
	for name, text := range map[string]string{
		"r.csv":  "account,refund_id,amount,currency\nacct,a,,\nacct,\"b,,\nacct,c,,\n",
		"r.json": `[{"account":"acct","refund_id":"a"},{"account":`,
	} {
		got := s.must(2, "resolve", "-import", write(t, name, text), "-complete-until", time.Now().UTC().Format(time.RFC3339))
		if !regexp.MustCompile("the report cannot be used: line |cut off").MatchString(got.Stderr) || strings.Contains(got.Stdout, "-expect") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestLookup: where the service can be asked, unknown refunds are settled by
// themselves, and a response that does not say so settles nothing.
func TestLookup(t *testing.T) {
	s := newSystem(t)
	s.doubtful(`{"refund_id":"a/b c","amount":5,"currency":"EUR"}`, `{"refund_id":"b"}`, `{"refund_id":"c"}`, `{"refund_id":"d"}`)
	s.age()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.EscapedPath() {
		case "/lookup/acct/a%2Fb%20c":
			w.Write([]byte(`{"found":true,"amount":5,"currency":"EUR"}`))
		case "/lookup/acct/b":
			w.Write([]byte(`{"found":false}`))
		case "/lookup/acct/c":
			w.Write([]byte(`{}`))
		default:
			http.NotFound(w, r)
		}
	}))
	defer service.Close()
	got := s.must(0, "work", "-drain", "-lookup", service.URL+"/lookup")
	if s.states() != "accepted absent unknown unknown" || s.requests() != 0 || strings.Count(got.Stderr, "the resolver failed") != 2 {
		t.Errorf("%s\n%s", s.states(), got.Stderr)
	}
	if got := s.decisions(); got != "1 resolver: found (); 2 resolver: not found ()" {
		t.Error(got)
	}
}

// TestOverdue: a refund that is pending for too long, or without a job, is looked at.
func TestOverdue(t *testing.T) {
	s := newSystem(t)
	s.enqueue(one)
	s.must(0, "status")
	s.set(`UPDATE outbox_refund SET enqueued_at = $1`, time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15:04:05.000Z"))
	if got := s.must(exitAttention, "status"); !strings.Contains(got.Stdout, "LOOK: 1 pending, the oldest for 1h") {
		t.Errorf("%+v", got)
	}
	s.must(0, "status", "-overdue", "2h")
	s.set(`DELETE FROM river_job`)
	if got := s.must(exitAttention, "status", "-overdue", "2h", "-json"); !strings.Contains(got.Stdout, `"pending_without_job":1`) {
		t.Errorf("%+v", got)
	}
	s.must(0, "work", "-drain")
	if s.states() != accepted {
		t.Error(s.states())
	}
	s.must(0, "status")
	cmd, wait := s.start()
	s.enqueue(`{"refund_id":"b"}`)
	program.WaitFor(t, func() bool { return s.states() == "accepted accepted" })
	s.kill(cmd, wait)
}
