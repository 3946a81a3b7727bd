package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/probe"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// A service to ask, with the environment that names it.
type service struct {
	engine *sandbox.Engine
	env    map[string]string
	dir    string
}

func start(t *testing.T, points map[string][]string) *service {
	engine := sandbox.New()
	if err := engine.SetProfile(&sandbox.Profile{Version: sandbox.ProfileVersion, Points: points}); err != nil {
		t.Fatal(err)
	}
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	env := map[string]string{"CARDDATA_API_KEY": "key", "CARDDATA_ACCESS_TOKEN": "token", "CARDDATA_MERCHANT_ID": "merchant", "CARDDATA_ACCOUNT_ID": "production"}
	for _, area := range []string{"BIN", "REFUND", "UPDATER"} {
		env["CARDDATA_"+area+"_URL"] = server.URL()
	}
	return &service{engine, env, t.TempDir()}
}

func (s *service) probe(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"-ledger", filepath.Join(s.dir, "ledger"), "-rate", "1000"}, args...)
	code = run(t.Context(), args, func(name string) (string, bool) { value, ok := s.env[name]; return value, ok }, &out, &errs)
	return code, out.String(), errs.String()
}

func (s *service) writes() int { return len(s.engine.Requests(sandbox.Refunds)) }
func (s *service) reads() int {
	return len(s.engine.Requests(sandbox.Bins)) + len(s.engine.Requests(sandbox.Updater))
}

var closesSoon = map[string][]string{"service.idle": {"closed after 1 s"}}

// TestConsent proves that nothing is written before the account was given twice
// and the plan's hash given back, and never to the production account.
func TestConsent(t *testing.T) {
	s := start(t, closesSoon)
	_, printed, _ := s.probe(t, "-write", "test")
	hash := regexp.MustCompile(`plan hash ([0-9a-f]+)`).FindStringSubmatch(printed)
	if hash == nil {
		t.Fatalf("no hash in %q", printed)
	}
	for _, args := range [][]string{
		{"-write", "test"},
		{"-write", "test", "-confirm", "test"},
		{"-write", "test", "-plan-hash", hash[1]},
		{"-write", "test", "-confirm", "other", "-plan-hash", hash[1]},
		{"-write", "other", "-confirm", "other", "-plan-hash", hash[1]},
		{"-write", "test", "-confirm", "test", "-plan-hash", hash[1], "-job", "42"},
		{"-write", "production", "-confirm", "production", "-plan-hash", hash[1]},
	} {
		s.env["CARDDATA_CONFIRM"], s.env["CARDDATA_PLAN_HASH"] = "test", hash[1]
		if code, _, _ := s.probe(t, args...); code != exitUsage || s.writes()+s.reads() != 0 {
			t.Errorf("%q: exit %d, %d requests", args, code, s.writes()+s.reads())
		}
	}
	if code, _, stderr := s.probe(t, "-write", "test", "-confirm", "test", "-plan-hash", hash[1]); code != exitDone || s.writes() == 0 || s.writes() > 6 {
		t.Errorf("exit %d, %d refunds: %s", code, s.writes(), stderr)
	}
}

// TestPlanSendsNothing proves that the default prints every request and sends none.
func TestPlanSendsNothing(t *testing.T) {
	s := start(t, nil)
	code, printed, stderr := s.probe(t, "-job", "42", "-pending", "43")
	if code != exitDone || s.reads()+s.writes() != 0 {
		t.Errorf("exit %d, %d requests: %s", code, s.reads()+s.writes(), stderr)
	}
	for _, text := range []string{"may be billed", "there is no harmless refund", "999999", "refund-duplicate", "download-range"} {
		if !strings.Contains(printed, text) {
			t.Errorf("the plan says nothing of %q", text)
		}
	}
}

// TestFiles proves that a run writes its points, a page, and a profile that a fake
// and -compare take.
func TestFiles(t *testing.T) {
	s := start(t, map[string][]string{"service.idle": {"closed after 1 s"}, "lookup.order": {"changed"}, "download.pending": {"409 job_not_ready"}})
	file := func(name string) string { return filepath.Join(s.dir, name) }
	code, printed, stderr := s.probe(t, "-read", "-job", "42", "-pending", "43", "-json", file("json"), "-html", file("html"), "-profile", file("profile"))
	if code != exitDone || !strings.Contains(printed, "409 job_not_ready") || s.writes() > 0 {
		t.Fatalf("exit %d: %s%s", code, printed, stderr)
	}
	var points struct{ Points []probe.Point }
	text, _ := os.ReadFile(file("json"))
	if err := json.Unmarshal(text, &points); err != nil || len(points.Points) != 21 {
		t.Errorf("%d points, %v", len(points.Points), err)
	}
	for _, p := range points.Points {
		if tried := p.State != probe.NotTried; tried != !strings.HasPrefix(p.ID, "refund.") {
			t.Errorf("%s is %s", p.ID, p.State)
		}
	}
	text, _ = os.ReadFile(file("html"))
	for _, part := range []string{"lookup.order", "changed", "with 95 % confidence, at most", "NotReady", "did not hold", "operator"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the page does not say %q", part)
		}
	}
	if strings.Contains(string(text), "http") && regexp.MustCompile(`(src|href)=`).Match(text) {
		t.Error("the page needs something beside itself")
	}
	text, _ = os.ReadFile(file("profile"))
	if _, err := sandbox.ParseProfile(text); err != nil {
		t.Error(err)
	}
	if code, _, stderr := s.probe(t, "-read", "-job", "42", "-pending", "43", "-compare", file("profile")); code != exitDone {
		t.Errorf("compared with itself: exit %d: %s", code, stderr)
	}
	unsorted, err := parseProfile(text)
	slices.Reverse(unsorted.Points["lookup.nulls"])
	if err != nil || len(unsorted.Points["lookup.nulls"]) < 2 || os.WriteFile(file("unsorted"), unsorted.marshal(), 0o600) != nil {
		t.Errorf("no nulls to change the order of, %v", err)
	}
	if code, printed, _ := s.probe(t, "-read", "-job", "42", "-pending", "43", "-compare", file("unsorted")); code != exitDone {
		t.Errorf("compared with its profile in another order: exit %d: %s", code, printed)
	}
	other := start(t, map[string][]string{"service.idle": {"closed after 1 s"}, "lookup.order": {"kept"}})
	if code, printed, _ := other.probe(t, "-read", "-compare", file("profile")); code != exitDrifted || !strings.Contains(printed, "lookup.order: kept; in the profile: changed") {
		t.Errorf("another service: exit %d: %s", code, printed)
	}
}

// TestUsage proves that what cannot be meant is refused before anything is sent.
func TestUsage(t *testing.T) {
	s := start(t, nil)
	for _, args := range [][]string{{"-rate", "0"}, {"-rate", "NaN"}, {"argument"}, {"-compare", "missing"}, {"-unknown"}} {
		if code, _, _ := s.probe(t, args...); code != exitUsage {
			t.Errorf("%q: exit %d", args, code)
		}
	}
	for _, base := range []string{"http://service.example", "https://user:secret@service.example", "ftp://service.example"} {
		s.env["CARDDATA_BIN_URL"] = base
		code, _, stderr := s.probe(t, "-read")
		if code != exitUsage || strings.Contains(stderr, "secret") {
			t.Errorf("%s: exit %d: %s", base, code, stderr)
		}
	}
	clear(s.env)
	if code, _, stderr := s.probe(t); code != exitUsage || !strings.Contains(stderr, "no area") {
		t.Errorf("no environment: exit %d: %s", code, stderr)
	}
}

// TestOptionsFollowTheEvidence proves that the options take for an acceptance each
// status that the service gave one, and tell of a job that looks like another.
func TestOptionsFollowTheEvidence(t *testing.T) {
	pending, missing := `{"error":{"code":"job_not_found"}}`, `{"error":{"code":"job_not_found"}}`
	seen := map[string]bool{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(r.URL.Path, "/refunds") && seen[string(body)]:
			w.WriteHeader(http.StatusOK)
		case strings.Contains(r.URL.Path, "/refunds"):
			seen[string(body)] = true
			w.WriteHeader(http.StatusCreated)
		case strings.Contains(r.URL.Path, "/jobs/43/"):
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, pending)
		default:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, missing)
		}
	}))
	server.Config.IdleTimeout = time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	const same = "a mistyped id is waited for until the deadline"
	for _, tc := range []struct {
		pending, missing string
		says, not        string
	}{
		{pending, missing, same, "e.Code !="},
		{"", "", same, "e.Code"},
		{"", missing, `return e.StatusCode == 404 && e.Code != "job_not_found"`, same},
		{`{"code":"job_not_ready"}`, missing, `return e.StatusCode == 404 && e.Code == "job_not_ready"`, same},
	} {
		pending, missing = tc.pending, tc.missing
		s := &service{env: map[string]string{
			"CARDDATA_REFUND_URL": server.URL, "CARDDATA_UPDATER_URL": server.URL, "CARDDATA_ACCESS_TOKEN": "token-1", "CARDDATA_MERCHANT_ID": "merchant-1",
		}, dir: t.TempDir()}
		clear(seen)
		args := []string{"-write", "account-1", "-pending", "43", "-html", filepath.Join(s.dir, "html")}
		_, printed, _ := s.probe(t, args...)
		hash := regexp.MustCompile(`plan hash ([0-9a-f]+)`).FindStringSubmatch(printed)
		if code, _, stderr := s.probe(t, append(args, "-confirm", "account-1", "-plan-hash", hash[1])...); code != exitDone {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		text, _ := os.ReadFile(filepath.Join(s.dir, "html"))
		page := html.UnescapeString(string(text))
		if !strings.Contains(page, "if r.StatusCode != 201 && r.StatusCode != 200 {") {
			t.Error("a duplicate that was recorded would be an unknown outcome")
		}
		if !strings.Contains(page, tc.says) || strings.Contains(page, tc.not) {
			t.Errorf("%s, %s: the options do not say %q, or say %q", pending, missing, tc.says, tc.not)
		}
	}
}

// TestOptionsCompile builds the recommended options of many services.
func TestOptionsCompile(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, replace := t.TempDir(), map[string]string{}
	args := []string{"build", "-overlay", filepath.Join(dir, "overlay.json")}
	random := rand.New(rand.NewPCG(1, 2))
	answers := map[string][][]string{
		"service.quota":     {{"none"}, {"X-Ratelimit-Limit", "X-Ratelimit-Remaining"}},
		"refund.response":   {{"201", "application/json", `{"id":"string"}`}, {"204"}},
		"refund.credential": {{"accepted without"}, {"refused 401"}},
		"download.pending":  {{"404 job_not_ready"}, {"404"}, {"409"}},
		"download.missing":  {{"404"}, {"400 invalid"}},
	}
	for n := range 8 {
		var points []probe.Point
		for id, list := range answers {
			if i := random.IntN(len(list) + 1); i < len(list) {
				points = append(points, probe.Point{ID: id, State: probe.Observed, Answer: list[i]})
			}
		}
		file := filepath.Join(dir, fmt.Sprintf("%d.go", n))
		if err := os.WriteFile(file, []byte(options(points, [][]int{nil, {204}, {201, 200}}[random.IntN(3)])), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, "examples", "probe", "recommended", fmt.Sprint(n), "options.go")] = file
		args = append(args, fmt.Sprintf("./examples/probe/recommended/%d", n))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
