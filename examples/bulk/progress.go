package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/carddata/carddata-go/examples/internal/target"
)

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 5 * time.Second
)

// show shows how far a run has come, until the function returned is called: as
// a bar on a terminal, and otherwise as a line every few seconds. What is left is
// measured in bytes, because the number of rows is not known before the end.
func show(stderr io.Writer, size int64, position func() checkpoint) (stop func()) {
	start := position()
	if !target.IsTerminal(stderr) {
		return target.Every(lineEvery, func() { fmt.Fprintln(stderr, progressLine(start, position(), size)) })
	}
	bar := progressbar.NewOptions64(max(1, size-start.Input),
		progressbar.OptionSetWriter(stderr),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false), // it predicts before it has seen anything
		progressbar.OptionSetWidth(16),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionClearOnFinish(),
	)
	stopTicker := target.Every(barEvery, func() {
		now := position()
		bar.Describe(progressLine(start, now, size))
		bar.Set64(now.Input - start.Input)
	})
	return func() {
		stopTicker()
		bar.Finish()
	}
}

func progressLine(start, now checkpoint, size int64) string {
	seconds := now.Totals.Seconds - start.Totals.Seconds
	rows := now.Totals.Rows - start.Totals.Rows
	line := fmt.Sprintf("%s rows, %s distinct, %s requests", grouped(now.Totals.Rows),
		grouped(int64(now.Totals.Distinct)), grouped(int64(now.Totals.Requests)))
	if done := now.Input - start.Input; done > 0 && seconds > 0 {
		left := time.Duration(float64(size-now.Input) * seconds / float64(done) * float64(time.Second))
		line += fmt.Sprintf(", %s rows/s, %s left", grouped(int64(float64(rows)/seconds)), left.Round(time.Second))
	}
	return line
}
