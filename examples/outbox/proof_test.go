package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

func TestKilledSQLite(t *testing.T) {
	t.Parallel()
	testKilled(t, newSystem(t), 1)
}

// testKilled is the proof that no refund is lost, made up or doubled: refunds are
// booked, of which a tenth is rolled back, while workers are killed at random and
// the service breaks a tenth of the connections. Then an operator decides.
func testKilled(t *testing.T, s *system, workers int) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a minute: run without -short")
	}
	records, kills := 10_000, 25
	if racing { // it slows the test and not the program, which is another process
		records = 3_000
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	p := &proof{system: s, random: rand.New(rand.NewPCG(seed, 0)), committed: map[string]bool{}}

	// Some faults are left for the time after the decisions.
	for range records {
		s.engine.Script(sandbox.Refunds, p.fault())
	}
	began := time.Now()
	booked := make(chan error, 1)
	booking := rand.New(rand.NewPCG(seed, 1))
	go func() { booked <- p.book(booking, records) }()
	p.killWorkers(workers, kills, records*8/10)
	if err := <-booked; err != nil {
		t.Fatal(err)
	}
	s.age() // the markers of the workers that were killed
	s.must(0, "work", "-drain")
	t.Logf("%d committed, %d rolled back, %d requests, %d kills in %v",
		len(p.committed), p.rolledBack, s.engine.RequestCount(sandbox.Refunds), kills, time.Since(began))
	if p.rolledBack == 0 {
		t.Error("nothing was rolled back")
	}

	// Before anybody decided, nothing was sent twice.
	before := p.check()
	if before[unknown] < records/20 || before["the worker ended"] == 0 {
		t.Errorf("too few refunds are unknown to prove anything: %v", before)
	}

	// A report of the service, of which one row in a hundred is wrong.
	open, _ := p.unsettled()
	report, wrong := p.report(true)
	preview := p.settle(report)
	for _, line := range wrong {
		if !strings.Contains(preview, fmt.Sprintf("line %d ", line)) {
			t.Errorf("line %d is wrong, and not told of", line)
		}
	}
	left, _ := p.unsettled()
	if share := 1 - float64(len(left))/float64(len(open)); share < 0.99 {
		t.Errorf("the report settles %d of %d refunds: %.4f", len(open)-len(left), len(open), share)
	}
	t.Logf("a report with %d wrong rows leaves %d of %d refunds unknown; %v", len(wrong), len(left), len(open), p.check())

	// Later reports, which are right, confirm what is absent: it is sent again.
	for range 20 {
		report, _ := p.report(false)
		p.settle(report, "-resubmit")
		_, others := p.unsettled()
		p.look(others)
		s.must(0, "work", "-drain")
		if counts := p.counts(); counts[unknown]+counts[absent]+counts[pending] == 0 {
			break
		}
	}
	after := p.check()
	if after[unknown]+after[absent]+after[pending]+after[sending]+after["duplicates"] != 0 {
		t.Errorf("after the reports: %v", after)
	}
	t.Logf("before the reports %v, after them %v, in %v", before, after, time.Since(began))
}

type proof struct {
	*system
	random     *rand.Rand
	committed  map[string]bool // by content
	rolledBack int
}

func (p *proof) fault() sandbox.Fault {
	switch n := p.random.IntN(1000); {
	case n < 50:
		return sandbox.Fault{DropBefore: true}
	case n < 100:
		return sandbox.Fault{DropAfter: true}
	case n < 110:
		return sandbox.Fault{Status: 422}
	case n < 115:
		return sandbox.Fault{Status: 503, Process: n%2 == 0}
	case n < 130:
		return sandbox.Fault{HeaderDelay: 20 * time.Millisecond}
	}
	return sandbox.Fault{}
}

var errRolledBack = errors.New("rolled back")

// book books records in transactions of up to 40. A few are updates of the record
// before.
func (p *proof) book(random *rand.Rand, records int) error {
	ctx := p.t.Context()
	if _, err := p.db.Exec(ctx, `CREATE TABLE booking (content TEXT NOT NULL)`); err != nil {
		return err
	}
	for n := 0; n < records; {
		var batch []*refunds.Refund
		for range min(1+random.IntN(40), records-n) {
			r := &refunds.Refund{RefundID: fmt.Sprintf("rf_%d", n), Amount: new(int64(n)), Currency: "EUR"}
			if random.IntN(20) == 0 && len(batch) > 0 {
				*r = *batch[len(batch)-1]
				r.SVCCodes.SVCRefundStatus += "+"
			}
			batch = append(batch, r)
			n++
		}
		contents := make([]string, len(batch))
		err := p.db.Transact(ctx, func(tx refundoutbox.Tx) error {
			for i, r := range batch {
				text, err := json.Marshal(r)
				if err != nil {
					return err
				}
				contents[i] = string(text)
				if _, err := tx.Exec(ctx, `INSERT INTO booking (content) VALUES ($1)`, contents[i]); err != nil {
					return err
				}
			}
			if _, err := refundoutbox.Enqueue(ctx, tx, "acct", batch, false); err != nil {
				return err
			}
			if random.IntN(10) == 0 {
				return errRolledBack
			}
			return nil
		})
		if err == errRolledBack {
			p.rolledBack += len(batch)
			continue
		}
		if err != nil {
			return err
		}
		for _, content := range contents {
			p.committed[content] = true
		}
	}
	return nil
}

// killWorkers runs workers, and kills one of them whenever a random number of
// requests has arrived, until all of the requests have.
func (p *proof) killWorkers(workers, kills, requests int) {
	p.t.Helper()
	type process struct {
		cmd   *exec.Cmd
		ended chan program.Result
	}
	start := func() process {
		cmd := p.command("work")
		wait := program.Start(p.t, cmd)
		ended := make(chan program.Result, 1)
		go func() { ended <- wait() }()
		return process{cmd, ended}
	}
	at := make([]int, kills)
	for i := range at {
		at[i] = p.random.IntN(requests)
	}
	slices.Sort(at)
	running := make([]process, workers)
	for i := range running {
		running[i] = start()
	}
	for i := range at {
		victim := &running[p.random.IntN(workers)]
		for p.engine.RequestCount(sandbox.Refunds) < at[i] {
			select {
			case got := <-victim.ended:
				p.t.Fatalf("a worker ended by itself: %+v", got)
			case <-time.After(time.Millisecond):
			}
		}
		// Also at its start, when it settles what others left behind.
		time.Sleep(time.Duration(p.random.IntN(50)) * time.Millisecond)
		victim.cmd.Process.Kill()
		<-victim.ended
		*victim = start()
	}
	for _, process := range running {
		process.cmd.Process.Kill()
		<-process.ended
	}
}
