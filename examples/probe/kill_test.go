package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// TestMain lets the test program be the probe, for a test to kill it.
func TestMain(m *testing.M) {
	if os.Getenv("PROBE_CHILD") != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestKilledProgram kills the program at random moments and starts it again. The
// sandbox's record shows that nothing of a plan arrived more often than the plan has it,
// and the ledger that what was in flight stays unknown.
func TestKilledProgram(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 5
	}
	random := rand.New(rand.NewPCG(1, 2))
	whole := start(t, closesSoon)
	whole.probe(t, whole.write(t)...)
	plan := whole.arrived(0)

	s := start(t, closesSoon)
	for seen := 0; kills > 0; {
		unknown := s.unknown(t)
		killed := s.run(t, random)
		for _, id := range s.unknown(t) {
			unknown = slices.DeleteFunc(unknown, func(known string) bool { return known == id })
		}
		switch {
		case killed && len(unknown) > 0:
			t.Errorf("%q were unknown, and are known after the next start", unknown)
		case killed:
			kills--
		}
		for request, times := range s.arrived(seen) {
			if times > plan[request] {
				t.Errorf("%d instead of %d times: %s", times, plan[request], request)
			}
		}
		if !killed {
			seen = s.reads() + s.writes() // the next run has a plan of its own
		}
	}
	if s.reads()+s.writes() < 50 && !testing.Short() {
		t.Errorf("only %d requests arrived", s.reads()+s.writes())
	}
}

// write are the arguments of a run that may do all.
func (s *service) write(t *testing.T) []string {
	args := []string{"-write", "test", "-confirm", "test", "-job", "42", "-pending", "43"}
	_, printed, _ := s.probe(t, args...)
	hash := regexp.MustCompile(`plan hash ([0-9a-f]+)`).FindStringSubmatch(printed)
	if hash == nil {
		t.Fatalf("no hash in %s", printed)
	}
	return append(args, "-plan-hash", hash[1])
}

// run starts the program, and kills it when it says or does something for the nth
// time. It returns false if the program came to its end before.
func (s *service) run(t *testing.T, random *rand.Rand) (killed bool) {
	args := append([]string{"-ledger", filepath.Join(s.dir, "ledger"), "-rate", "1000"}, s.write(t)...)
	child := exec.Command(os.Args[0], args...)
	child.Env = append(os.Environ(), "PROBE_CHILD=1")
	for name, value := range s.env {
		child.Env = append(child.Env, name+"="+value)
	}
	said, err := child.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	last, when, due := 1+random.IntN(12), random.IntN(3), 0
	var mu sync.Mutex
	count := func(kind int) {
		mu.Lock()
		defer mu.Unlock()
		if kind == when {
			if due++; due == last {
				killed = true
				child.Process.Kill()
			}
		}
	}
	for _, area := range []sandbox.Area{sandbox.Bins, sandbox.Refunds, sandbox.Updater} {
		s.engine.ScriptFunc(area, func(sandbox.Request) sandbox.Fault {
			count(1)
			return sandbox.Fault{}
		})
	}
	mu.Lock()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	mu.Unlock()
	var text strings.Builder
	for lines := bufio.NewScanner(said); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		count(0)
		if random.IntN(2) == 0 {
			count(2)
		}
	}
	if err := child.Wait(); err != nil && !killed {
		t.Fatalf("%v: %s", err, text.String())
	}
	mu.Lock()
	defer mu.Unlock()
	return killed
}

// arrived counts the requests after the first so many, without what differs from run
// to run.
func (s *service) arrived(after int) map[string]int {
	var all []sandbox.Record
	for _, area := range []sandbox.Area{sandbox.Bins, sandbox.Refunds, sandbox.Updater} {
		all = append(all, s.engine.Requests(area)...)
	}
	slices.SortStableFunc(all, func(a, b sandbox.Record) int { return a.Time.Compare(b.Time) })
	own := regexp.MustCompile(`test-probe-[0-9a-f]+-\d+-`)
	counts := map[string]int{}
	for _, r := range all[min(after, len(all)):] {
		if r.Method == http.MethodPost && !json.Valid(r.Body) {
			continue // a kill has cut the request off
		}
		body := own.ReplaceAllString(string(r.Body), "")
		// Which cards a lookup asks for depends on what was seen of them before.
		var lookup struct {
			Cards    []struct{ Card string }
			Enhanced *bool
		}
		if json.Unmarshal(r.Body, &lookup) == nil && lookup.Cards != nil {
			different := map[string]bool{}
			for _, c := range lookup.Cards {
				different[c.Card] = true
			}
			body = fmt.Sprintf("%d cards, all different: %v, enhanced: %v", min(len(lookup.Cards), 2), len(different) == len(lookup.Cards), lookup.Enhanced != nil)
		}
		counts[strings.Join([]string{r.Method, r.Path, r.Header.Get("Range"), r.Header.Get("If-Range"), body}, " ")]++
	}
	return counts
}

// unknown are the entries of the run that is under way which were sent, and of which
// nothing was seen.
func (s *service) unknown(t *testing.T) []string {
	data, err := os.ReadFile(filepath.Join(s.dir, "ledger"))
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	sent := map[string]bool{}
	for text := range strings.Lines(string(data)) {
		var entry struct {
			Sent     string
			Seen     struct{ Entry string }
			Finished int
		}
		_ = json.Unmarshal([]byte(text), &entry) // the last line may be cut off
		switch {
		case entry.Finished > 0:
			clear(sent)
		case entry.Sent != "" && sent[entry.Sent]:
			t.Errorf("%s was begun twice", entry.Sent)
		case entry.Sent != "":
			sent[entry.Sent] = true
		default:
			delete(sent, entry.Seen.Entry)
		}
	}
	return slices.Sorted(maps.Keys(sent))
}
