// Soak sends mixed traffic of many goroutines to a sandbox with faults, in
// rounds, and checks after each round that every answer was right and that
// nothing is left behind.
//
//	go -C internal/conformance run ./soak -for 10m
//
// It ends with exit code 1 when an answer was wrong, a refund was lost or doubled,
// or the end holds more than the start.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

type options struct {
	duration   time.Duration
	round      time.Duration
	goroutines int
	faults     float64
	seed       uint64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.duration, "for", 10*time.Minute, "how long to send traffic")
	flags.DurationVar(&o.round, "round", 5*time.Second, "how long a round is, after which all is checked")
	flags.IntVar(&o.goroutines, "goroutines", 200, "how many goroutines send it, 10 or more")
	flags.Float64Var(&o.faults, "faults", 0.1, "the share of requests that meet a fault, 0 to 1")
	flags.Uint64Var(&o.seed, "seed", 0, "of the traffic and the faults; 0: by the time")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if o.goroutines < 10 || o.duration <= 0 || o.round <= 0 || o.faults < 0 || o.faults > 1 || flags.NArg() > 0 {
		flags.Usage()
		return 2
	}
	o.seed = cmp.Or(o.seed, uint64(time.Now().UnixNano()))
	s := &soak{o: o, engine: sandbox.New(), report: newReport()}
	s.faults = &faultSource{share: o.faults, random: rand.New(rand.NewPCG(o.seed, 0))}
	wrong, err := s.run(ctx, stdout)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 1
	case wrong > 0:
		fmt.Fprintf(stderr, "%d wrong, seed %d\n", wrong, o.seed)
		return 1
	}
	return 0
}
