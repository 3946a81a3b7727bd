package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/carddata/carddata-go/updater"
)

// A progress is a bar on a terminal for all files together, and nothing elsewhere.
type progress struct {
	mu    sync.Mutex
	files []updater.FileProgress
	bar   *progressbar.ProgressBar // nil: none
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func newProgress(stderr io.Writer, files int) *progress {
	p := &progress{files: make([]updater.FileProgress, files)}
	for i := range p.files {
		p.files[i].Total = -1
	}
	if isTerminal(stderr) {
		p.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(stderr), progressbar.OptionShowBytes(true),
			progressbar.OptionUseIECUnits(true), progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionFullWidth())
	}
	return p
}

// of returns what a download reports to.
func (p *progress) of(file int) func(updater.FileProgress) {
	if p.bar == nil {
		return nil
	}
	return func(now updater.FileProgress) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.files[file] = now
		bytes, total := int64(0), int64(0)
		for _, f := range p.files {
			bytes += f.Bytes
			if f.Total < 0 || total < 0 {
				total = -1
			} else {
				total += f.Total
			}
		}
		if total != p.bar.GetMax64() {
			p.bar.ChangeMax64(total)
		}
		p.bar.Set64(bytes)
	}
}

func (p *progress) clear() {
	if p.bar != nil {
		p.bar.Clear()
	}
}
