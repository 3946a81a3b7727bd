package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/carddata/carddata-go/examples/internal/target"
)

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 5 * time.Second
)

// A progress is how far a run has come. What is left is measured in bytes of the
// input, because the number of rows is not known before the end.
type progress struct {
	at         checkpoint
	read, size int64 // of the input; size is 0 where it has no end yet
}

// show shows how far a run has come, until the function returned is called: as a
// bar on a terminal, and otherwise as a line every few seconds.
func show(stderr io.Writer, now func() progress) (stop func()) {
	start := now()
	bar := target.OpenBar(stderr, term.IsTerminal, term.GetSize)
	if bar == nil {
		return target.Every(lineEvery, func() { fmt.Fprintln(stderr, strings.Join(now().facts(start), ", ")) })
	}
	stopTicker := target.Every(barEvery, func() {
		p := now()
		bar.Show(p.share(), p.facts(start))
	})
	return func() {
		stopTicker()
		bar.Erase()
	}
}

// share is -1 where the input has no end yet.
func (p progress) share() float64 {
	if p.size == 0 {
		return -1
	}
	return float64(p.read) / float64(p.size)
}

// facts are what is to be said, the most important first.
func (p progress) facts(start progress) []string {
	seconds := p.at.Totals.Seconds - start.at.Totals.Seconds
	rows := p.at.Totals.Rows - start.at.Totals.Rows
	facts := []string{grouped(p.at.Totals.Rows) + " rows"}
	if p.at.paused {
		facts = append(facts, "waiting for the service")
	}
	if rows > 0 && seconds > 0 {
		facts = append(facts, grouped(int64(float64(rows)/seconds))+" rows/s")
	}
	if done := p.read - start.read; done > 0 && seconds > 0 && p.size > 0 {
		left := time.Duration(float64(p.size-p.read) * seconds / float64(done) * float64(time.Second))
		facts = append(facts, left.Round(time.Second).String()+" left")
	}
	if p.at.Totals.Failed > 0 {
		facts = append(facts, grouped(p.at.Totals.Failed)+" failed")
	}
	return append(facts, grouped(int64(p.at.Totals.Requests))+" requests", grouped(int64(p.at.Totals.Distinct))+" distinct")
}
