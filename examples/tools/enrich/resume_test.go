package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/proof/testkit/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// A gate lets a number of lookups pass and blocks the others.
type gate struct {
	pass    chan struct{} // one for each lookup that may pass; closed: all may
	reached chan struct{} // closed when the first is blocked
	once    sync.Once
}

func newGate(n int) *gate {
	g := &gate{pass: make(chan struct{}, n), reached: make(chan struct{})}
	for range n {
		g.pass <- struct{}{}
	}
	return g
}

func (g *gate) lookup(card string) json.RawMessage {
	select {
	case <-g.pass:
	default:
		g.once.Do(func() { close(g.reached) })
		<-g.pass
	}
	return sandbox.SyntheticCard(card)
}

// mixedInput has rows of card numbers, BINs, tokens, unknown cards, and bad ones.
func mixedInput(rows int) string {
	var text bytes.Buffer
	lines := strings.Split(string(invented()), "\n")
	for i, line := range lines[:rows+1] {
		fields := strings.Split(line, ",")
		switch {
		case i%97 == 1:
			line = fmt.Sprintf("%d,%s,1,EUR", i, fields[1][:6+i%5])
		case i%101 == 1:
			line = fmt.Sprintf("%d,tok_%d,1,EUR", i, i%1000)
		case i%103 == 1:
			line = fmt.Sprintf("%d,,\"of %s\nand more\",EUR", i, fields[1])
		case i%107 == 1:
			line = fmt.Sprintf("%d,%s", i, fields[1])
		}
		text.WriteString(line + "\r\n")
	}
	return text.String()
}

// saved returns how many rows the checkpoint of an output counts.
func saved(t *testing.T, out string) int64 {
	t.Helper()
	text, err := os.ReadFile(out + ".state")
	if err != nil {
		return 0
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s.Checkpoint.Totals.Rows
}

// TestKilledAndResumed kills a run several times, and compares its output with that of a
// run that was not killed.
func TestKilledAndResumed(t *testing.T) {
	text := mixedInput(20_000)
	in := write(t, "in.csv", text)
	_, vars := serve(t)
	run := func(out string, g *gate, more ...string) (*sandbox.Engine, *exec.Cmd) {
		engine, vars := serve(t)
		engine.SetLookup(g.lookup)
		return engine, program.Command(t, vars, binary, append([]string{"-in", in, "-out", out, "-prefix", "8", "-resume"}, more...)...)
	}
	open := newGate(0)
	close(open.pass)
	want := filepath.Join(t.TempDir(), "want.csv")
	_, cmd := run(want, open)
	if got := program.Run(t, cmd); got.Code != exitFailedRows {
		t.Fatalf("%+v", got)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	out := filepath.Join(t.TempDir(), "out.csv")
	for kill := range 4 {
		g := newGate(random.IntN(1000))
		_, cmd := run(out, g, "-concurrency", fmt.Sprint(1+kill%3*4))
		wait := program.Start(t, cmd)
		<-g.reached
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		wait().CheckMasked(t)
		close(g.pass)
		if kill%2 == 1 { // a kill may also happen in the middle of a write
			appendTo(t, out, "9999999,torn \"row")
			appendTo(t, out+".failed.csv", "99")
		}
	}
	_, cmd = run(out, open)
	got := program.Run(t, cmd)
	if got.Code != exitFailedRows || !regexp.MustCompile(`^complete, [1-9][0-9]+ failed +20,000 +rows`).MatchString(got.Stdout) || !strings.Contains(got.Stdout, "\nruns ") {
		t.Errorf("%+v", got)
	}
	for _, suffix := range []string{"", ".failed.csv"} {
		if read(t, out+suffix) != read(t, want+suffix) {
			t.Errorf("%s differs from that of a run that was not killed", suffix)
		}
	}
	// After a complete run, only rows that were added are looked up.
	in = write(t, "in.csv", text+"20001,411111,1,EUR\r\n")
	engine, cmd := run(out, open)
	if got := program.Run(t, cmd); got.Code != exitFailedRows || strings.Join(sent(t, engine), ",") != "411111" {
		t.Errorf("%+v; sent %v", got, sent(t, engine))
	}
	appendTo(t, out, "mine\n") // must not be lost
	_, cmd = run(out, open)
	if got := program.Run(t, cmd); got.Code != 2 || !strings.Contains(got.Stderr, "has grown since") || !strings.HasSuffix(read(t, out), "mine\n") {
		t.Errorf("%+v", got)
	}
	// Another input, and other flags.
	for _, args := range [][]string{{"-in", write(t, "in.csv", strings.Replace(text, ",EUR", ",USD", 1))}, {"-enhanced"}} {
		_, cmd = run(want, open, args...)
		if got := program.Run(t, cmd); got.Code != 2 || !strings.Contains(got.Stderr, "the input is not the one that the run began with") && !strings.Contains(got.Stderr, "begun with other flags") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	// None of these has changed anything.
	_, cmd = run(want, open)
	if got := program.Run(t, cmd); got.Code != exitFailedRows {
		t.Errorf("%+v", got)
	}
	if got := enrich(t, vars, "-in", in, "-out", want, "-prefix", "8", "-resume", "-sandbox"); got.Code != 2 || !strings.Contains(got.Stderr, "the same of sandbox and service") {
		t.Errorf("%+v", got)
	}
}

// TestInterrupted ends a run with Ctrl-C. The results that have arrived are kept.
func TestInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent Ctrl-C on windows")
	}
	engine, vars := serve(t)
	g := newGate(120)
	engine.SetLookup(g.lookup)
	var text strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text, "4%05d\n", i)
	}
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"-in", write(t, "in.csv", "card\n"+text.String()), "-out", out, "-concurrency", "1"}
	cmd := program.Command(t, vars, binary, args...)
	wait := program.Start(t, cmd)
	<-g.reached
	for _, more := range [][]string{{"-resume"}, {"-resume", "-columns", "type"}} {
		if got := enrich(t, vars, append(args, more...)...); got.Code != 2 || !strings.Contains(got.Stderr, "another process uses ") {
			t.Errorf("%q: %+v", more, got)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if got := wait(); got.Code != 130 || !strings.HasPrefix(got.Stdout, "interrupted  ") ||
		!strings.HasSuffix(got.Stderr, "interrupted\nto continue, run the same command with -resume\n") || saved(t, out) != 100 {
		t.Errorf("%d rows: %+v", saved(t, out), got)
	}
	close(g.pass)
	before := len(sent(t, engine))
	if got := enrich(t, vars, append(args, "-resume")...); got.Code != 0 || len(sent(t, engine))-before != 200 {
		t.Errorf("%d were sent: %+v", len(sent(t, engine))-before, got)
	}
}

// TestOutage has the service fail after its first responses. Bad rows and rows of known
// cards do not show whether it works again.
func TestOutage(t *testing.T) {
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "4%05d\n", i)
	}
	for i := range 500 {
		fmt.Fprintf(&text, "5%05d\n4%05d\n\x01\n", i, i%50)
	}
	engine := sandbox.New()
	engine.SetLookup(sandbox.SyntheticCard)
	var down atomic.Bool
	first := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if down.Load() && !bytes.Contains(body, []byte(`"400000"`)) {
			<-first // has its response, or it would look as if only this batch failed
			time.Sleep(50 * time.Millisecond)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if down.Load() {
			defer close(first)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		engine.ServeHTTP(w, r)
	}))
	defer server.Close()
	vars := map[string]string{"CARDDATA_BIN_URL": server.URL, "CARDDATA_API_KEY": "k"}
	in := write(t, "in.csv", "card\n"+text.String())
	want := filepath.Join(t.TempDir(), "out")
	if got := enrich(t, vars, "-in", in, "-out", want); got.Code != exitFailedRows {
		t.Fatalf("%+v", got)
	}
	down.Store(true)
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"-in", in, "-out", out}
	got := enrich(t, vars, append(args, "-give-up", "1ms")...)
	if got.Code != exitOutage || !strings.HasPrefix(got.Stdout, "outage ") ||
		!strings.HasSuffix(got.Stderr, "enrich: the service does not work: it has failed for 1ms\nto continue, run the same command with -resume\n") {
		t.Errorf("%+v", got)
	}
	down.Store(false)
	got = enrich(t, vars, append(args, "-resume")...)
	if got.Code != exitFailedRows || read(t, out) != read(t, want) || read(t, out+".failed.csv") != read(t, want+".failed.csv") {
		t.Errorf("%+v", got)
	}
}

// TestPipe compares what comes through a pipe with what a file gets.
func TestPipe(t *testing.T) {
	engine, vars := serve(t)
	engine.SetLookup(sandbox.SyntheticCard)
	text := mixedInput(10_000) // longer than the buffers
	dir := t.TempDir()
	args := []string{"-column", "card", "-prefix", "8"}
	run := func(in, stdin, out string, more ...string) program.Result {
		cmd := program.Command(t, vars, binary, append(append(args, "-in", in, "-out", out), more...)...)
		cmd.Stdin = strings.NewReader(stdin)
		return program.Run(t, cmd)
	}
	want := filepath.Join(dir, "want.csv")
	if got := run(write(t, "in.csv", text), "", want); got.Code != exitFailedRows {
		t.Fatalf("%+v", got)
	}
	failed := filepath.Join(dir, "failed.csv")
	got := run("-", text, "-", "-failed", failed)
	if got.Code != exitFailedRows || got.Stdout != read(t, want) || !strings.HasPrefix(got.Stderr, "complete, ") || read(t, failed) != read(t, want+".failed.csv") {
		t.Errorf("exit code %d, %d bytes, %s", got.Code, len(got.Stdout), got.Stderr)
	}
}

// TestManyBadRows has more bad rows between two cards than may wait for results.
func TestManyBadRows(t *testing.T) {
	_, vars := serve(t)
	in := write(t, "in.csv", "card\n411111\n"+strings.Repeat(strings.Repeat("x", maxRow/2)+",\n", maxWaiting/maxRow*2+10)+"45717360\n")
	out := filepath.Join(t.TempDir(), "out")
	got := enrich(t, vars, "-in", in, "-out", out, "-columns", "card_brand")
	if got.Code != exitFailedRows || read(t, out) != "card,card_brand\n411111,VISA\n45717360,VISA\n" || !regexp.MustCompile(`\nrequests +2\n`).MatchString(got.Stdout) {
		t.Errorf("%+v\n%s", got, read(t, out))
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}
