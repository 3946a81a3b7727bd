package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// A soak is one run of the program.
type soak struct {
	o       options
	engine  *sandbox.Engine
	clients *clients
	faults  *faultSource
	report  *report
	rounds  int
	wrong   int
}

// run sends traffic in rounds, and tells how much was wrong.
func (s *soak) run(ctx context.Context, stdout io.Writer) (wrong int, err error) {
	fmt.Fprintf(stdout, "%d goroutines, %v of traffic, %.0f %% of requests with a fault, seed %d\n",
		s.o.goroutines, s.o.duration, 100*s.o.faults, s.o.seed)
	s.engine.Retain(1 << 20) // all of a round
	// The first listener brings what stays for good.
	if err := s.serve(func() error { return nil }); err != nil {
		return 0, err
	}
	before := measure()
	err = s.serve(func() error {
		for began := time.Now(); time.Since(began) < s.o.duration && ctx.Err() == nil; s.rounds++ {
			s.round(ctx, stdout)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	s.engine.Reset()
	after := settle(before)
	s.report.print(stdout)
	fmt.Fprintf(stdout, "before: %v\nafter:  %v\n", before, after)
	if what := before.outgrownBy(after); what != "" {
		s.complain(stdout, "left behind: "+what)
	}
	fmt.Fprintf(stdout, "%d rounds, %d wrong\n", s.rounds, s.wrong)
	return s.wrong, nil
}

// serve listens for the clients while f runs. Its end ends all connections.
func (s *soak) serve(f func() error) error {
	server, err := s.engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	s.clients, err = newClients(server.URL())
	if err != nil {
		return err
	}
	return f()
}

// round sends traffic for a while, waits until all calls have ended, and checks
// them against the sandbox's record.
func (s *soak) round(ctx context.Context, stdout io.Writer) {
	s.engine.Reset()
	s.engine.SetLookup(sandbox.SyntheticCard)
	s.engine.SetJob(jobID, sandbox.Job{ContentType: "text/csv", Content: bytes.NewReader(jobContent())})
	ctx, cancel := context.WithTimeout(ctx, s.o.round)
	defer cancel()
	var feeding, traffic sync.WaitGroup
	feeding.Go(func() { s.faults.feed(ctx, s.engine) })
	l := newLedger()
	for i := range s.o.goroutines {
		random := rand.New(rand.NewPCG(s.o.seed, uint64(s.rounds*s.o.goroutines+i+1)))
		w := &worker{name: fmt.Sprintf("%d-%d", s.rounds, i), clients: s.clients, random: random, ledger: l, report: s.report}
		traffic.Go(func() { w.work(ctx, i) })
	}
	traffic.Wait()
	feeding.Wait()
	for _, what := range l.compare(s.engine.Refunds()) {
		s.complain(stdout, what)
	}
}

// complain reports what was wrong, the first few times.
func (s *soak) complain(stdout io.Writer, what string) {
	if s.wrong++; s.wrong <= 20 {
		fmt.Fprintf(stdout, "WRONG in round %d: %s\n", s.rounds+1, what)
	}
}
