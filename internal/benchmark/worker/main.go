// Command worker does one piece of work in a process of its own, in which nothing
// else takes memory, or serves those who do.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/carddata/carddata-go/internal/benchmark/process"
)

var works = map[string]func(process.Job) (process.Sample, error){
	"bulk":        bulk,
	"growth":      growth,
	"goroutines":  goroutines,
	"limit":       limit,
	"connections": connections,
	"timeouts":    timeouts,
	"cached":      cached,
	"decode":      decode,
	"download":    download,
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 3 {
		return fmt.Errorf("usage: worker work|serve JSON")
	}
	argument := []byte(os.Args[2])
	if os.Args[1] == "serve" {
		var o process.ServerOptions
		if err := json.Unmarshal(argument, &o); err != nil {
			return err
		}
		return serve(o)
	}
	var job process.Job
	if err := json.Unmarshal(argument, &job); err != nil {
		return err
	}
	work, ok := works[job.Work]
	if !ok {
		return fmt.Errorf("there is no work %q", job.Work)
	}
	s, err := work(job)
	if err != nil {
		return err
	}
	if peak := peakMiB(); peak > 0 {
		s["MiB"] = peak
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// peakMiB is the process's own peak memory; 0 if the system does not tell.
func peakMiB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	var kilobytes float64
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(peak, &kilobytes); err != nil {
		return 0
	}
	return kilobytes / 1024
}
