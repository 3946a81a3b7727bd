package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// A gate lets so many lookups of a service pass and holds the others up.
type gate struct {
	pass    chan struct{} // one for each that may pass; closed: all may
	reached chan struct{} // closed when one is held up
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

const killRows = 20_000

// killInput has card numbers, BINs, tokens, unknown cards and bad rows.
func killInput(t *testing.T) (path string, numbers []string) {
	t.Helper()
	var demo, text bytes.Buffer
	writeDemo(&demo, killRows)
	lines := bufio.NewScanner(&demo)
	for i := 0; lines.Scan(); i++ {
		line := lines.Text()
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
		case i > 0:
			numbers = append(numbers, fields[1])
		}
		text.WriteString(line + "\r\n")
	}
	return write(t, "in.csv", text.String()), numbers
}

// recorded returns the answers in a state file, by their range or identifier,
// and the rows that its last checkpoint counts.
func recorded(t *testing.T, path string) (known map[string]bool, rows int64) {
	t.Helper()
	known = map[string]bool{}
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var l stateLine
		if json.Unmarshal(line, &l) != nil {
			continue // torn
		}
		switch {
		case l.Answer != nil && l.Answer.ID != "":
			known[l.Answer.ID] = true
		case l.Answer != nil:
			var card struct {
				Min string `json:"bin_min"`
			}
			if err := json.Unmarshal(l.Answer.Card, &card); err != nil {
				t.Fatal(err)
			}
			known[sandbox.SyntheticRange(card.Min)] = true
		case l.Checkpoint != nil:
			rows = l.Checkpoint.Totals.Rows
		}
	}
	return known, rows
}

func TestKilledAndResumed(t *testing.T) {
	if testing.Short() {
		testKilled(t, 3, "-ranges")
		return
	}
	t.Run("ranges", func(t *testing.T) { testKilled(t, 8, "-ranges") })
	t.Run("prefix", func(t *testing.T) { testKilled(t, 3, "-prefix=8") })
	t.Run("numbers", func(t *testing.T) { testKilled(t, 3, "-ranges=false") })
}

func testKilled(t *testing.T, times int, mode string) {
	in, numbers := killInput(t)
	run := func(out string, g *gate, concurrency string) (*sandbox.Engine, *exec.Cmd) {
		engine, vars := serve(t)
		engine.SetLookup(g.lookup)
		return engine, program.Command(t, vars, binary,
			"-in", in, "-out", out, mode, "-concurrency", concurrency, "-resume", "-columns", defaultColumns+",bin_min,cost.interchange")
	}
	open := newGate(0)
	close(open.pass)
	want := filepath.Join(t.TempDir(), "want.csv")
	reference, cmd := run(want, open, "4")
	if got := program.Run(t, cmd); got.Code != exitFailedRows {
		t.Fatalf("%+v", got)
	}
	distinct := len(sent(t, reference))

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	out := filepath.Join(t.TempDir(), "out.csv")
	known, asked, kills, windows := map[string]bool{}, 0, 0, 0
	check := func(engine *sandbox.Engine) {
		cards := sent(t, engine)
		asked += len(cards)
		for _, card := range cards {
			inRange := false
			if mode == "-ranges" && isDigits(card) && len(card) >= 6 {
				prefix := sandbox.SyntheticRange(card)
				inRange = strings.HasPrefix(card, prefix) && known[prefix]
			}
			if known[card] || inRange {
				t.Errorf("run %d asked again for %s", kills+1, card)
			}
		}
	}
	for ; kills < times; kills++ {
		_, before := recorded(t, out+".state")
		// Half of the kills come at once. The other half come when rows are on the
		// disk: with one request at a time, those of the first 50 lookups will be.
		g, concurrency := newGate(random.IntN(distinct/16)), "4"
		if kills%2 == 1 {
			g, concurrency = newGate(bins.MaxCards+1+random.IntN(distinct/16)), "1"
		}
		engine, cmd := run(out, g, concurrency)
		wait := program.Start(t, cmd)
		ended := make(chan program.Result, 1)
		go func() { ended <- wait() }()
		select {
		case <-g.reached:
		case got := <-ended:
			t.Fatalf("the run ended by itself: %+v", got)
		}
		if kills%2 == 1 {
			program.WaitFor(t, func() bool { _, rows := recorded(t, out+".state"); return rows > before })
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		got := <-ended
		got.CheckMasked(t)
		close(g.pass)
		check(engine)
		// A window of the library's waits for answers, and one for the state file.
		windows += 2 * (2 * 50 * (4 + 1))
		known, _ = recorded(t, out+".state")
		// A kill may also happen in the middle of a write.
		if kills%3 == 2 {
			appendTo(t, out, "9999999,torn \"row")
			appendTo(t, out+".failed.csv", "99")
			appendTo(t, out+".state", `{"answer":{"id":"torn","time":99`)
		}
		for _, number := range numbers {
			if strings.Contains(got.Stdout+got.Stderr, number) {
				t.Errorf("a card number was printed: %s", number)
			}
		}
		checkNoNumbers(t, out+".state", numbers)
		checkNoNumbers(t, out+".failed.csv", numbers)
	}
	engine, cmd := run(out, open, "4")
	got := program.Run(t, cmd)
	check(engine)
	if got.Code != exitFailedRows || !regexp.MustCompile(`^complete, [1-9][0-9]+ failed +20,000 +rows`).MatchString(got.Stdout) {
		t.Errorf("%+v", got)
	}
	for _, suffix := range []string{"", ".failed.csv"} {
		if read(t, out+suffix) != read(t, want+suffix) {
			t.Errorf("%s differs from that of a run that was not killed", suffix)
		}
	}
	// Answers about card numbers are not kept without ranges or a prefix.
	if most := distinct + windows; asked > most && mode != "-ranges=false" {
		t.Errorf("%d identifiers were asked for, want at most %d and what was in flight, %d", asked, distinct, most)
	}
	t.Logf("%d identifiers were asked for in %d runs, %d in one run", asked, kills+1, distinct)

	// The run is complete: resuming it again changes nothing and asks for nothing.
	engine, cmd = run(out, open, "4")
	if got := program.Run(t, cmd); got.Code != exitFailedRows || engine.RequestCount(sandbox.Bins) != 0 || read(t, out) != read(t, want) {
		t.Errorf("%+v", got)
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

var longNumber = regexp.MustCompile(`[0-9]{16}`)

// checkNoNumbers fails the test if a file holds one of the card numbers.
func checkNoNumbers(t *testing.T, path string, numbers []string) {
	t.Helper()
	all := make(map[string]bool, len(numbers))
	for _, number := range numbers {
		all[number] = true
	}
	for _, found := range longNumber.FindAllString(read(t, path), -1) {
		if all[found] {
			t.Errorf("%s holds the card number %s", filepath.Base(path), found)
		}
	}
}
