package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/carddata/carddata-go/updater"
)

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// newBar shows on a terminal how far a download is. Elsewhere show is nil, and hide does nothing.
func newBar(stderr io.Writer) (show func(updater.FileProgress), hide func()) {
	if !isTerminal(stderr) {
		return nil, func() {}
	}
	bar := progressbar.NewOptions64(-1, progressbar.OptionSetWriter(stderr), progressbar.OptionShowBytes(true),
		progressbar.OptionUseIECUnits(true), progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionFullWidth())
	return func(now updater.FileProgress) {
		if now.Total != bar.GetMax64() {
			bar.ChangeMax64(now.Total)
		}
		bar.Set64(now.Bytes)
	}, func() { bar.Clear() }
}
