package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/updater"
)

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 5 * time.Second
)

// A progress is how far all downloads have come.
type progress struct {
	mu    sync.Mutex
	files []fileProgress
	began time.Time // when the first byte arrived

	out    sync.Mutex
	stderr io.Writer
	bar    *progressbar.ProgressBar // nil where no terminal is
}

type fileProgress struct {
	updater.FileProgress
	begun, done bool
	kept        int64 // by an earlier run
}

func newProgress(stderr io.Writer, files int) *progress {
	p := &progress{files: make([]fileProgress, files), stderr: stderr}
	if target.IsTerminal(stderr) {
		p.bar = progressbar.NewOptions64(1,
			progressbar.OptionSetWriter(stderr),
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionSetPredictTime(false), // it does not know what an earlier run kept
			progressbar.OptionSetWidth(16),
			progressbar.OptionShowDescriptionAtLineEnd(),
			progressbar.OptionClearOnFinish(),
		)
	}
	return p
}

// of returns what a download reports to.
func (p *progress) of(file int) func(updater.FileProgress) {
	return func(now updater.FileProgress) {
		p.mu.Lock()
		defer p.mu.Unlock()
		f := &p.files[file]
		if !f.begun {
			f.begun, f.kept = true, now.Bytes
		}
		f.FileProgress = now
		if p.began.IsZero() {
			p.began = time.Now()
		}
	}
}

func (p *progress) finish(file int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files[file].done = true
}

// A snapshot is the sum over all files.
type snapshot struct {
	files, done       int
	bytes, kept, size int64 // size is -1 while it is not known
	resumes           int
	took              time.Duration
}

func (p *progress) now() snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := snapshot{files: len(p.files)}
	if !p.began.IsZero() {
		s.took = time.Since(p.began)
	}
	for _, f := range p.files {
		s.bytes += f.Bytes
		s.kept += f.kept
		s.resumes += f.Resumes
		if f.done {
			s.done++
		}
		if !f.begun || f.Total < 0 || s.size < 0 {
			s.size = -1
		} else {
			s.size += f.Total
		}
	}
	return s
}

func (s snapshot) amount() string {
	if s.size < 0 {
		return humanize.IBytes(uint64(s.bytes))
	}
	return humanize.IBytes(uint64(s.bytes)) + " of " + humanize.IBytes(uint64(s.size))
}

func (s snapshot) String() string {
	line := s.amount()
	if got := s.bytes - s.kept; got > 0 && s.took > 0 {
		rate := float64(got) / s.took.Seconds()
		line += ", " + humanize.IBytes(uint64(rate)) + "/s"
		if s.size >= 0 {
			left := time.Duration(float64(s.size-s.bytes) / rate * float64(time.Second))
			line += fmt.Sprintf(", %s left", left.Round(time.Second))
		}
	}
	if s.resumes > 0 {
		line += ", resumed " + humanize.Comma(int64(s.resumes)) + "×"
	}
	if s.files > 1 {
		line += fmt.Sprintf(", %d of %d files", s.done, s.files)
	}
	return line
}

// show shows p until the function returned is called: as a bar on a terminal,
// and otherwise as a line every few seconds.
func (p *progress) show() (stop func()) {
	if p.bar == nil {
		return target.Every(lineEvery, func() { p.say(p.now().String()) })
	}
	stopTicker := target.Every(barEvery, func() {
		p.out.Lock()
		defer p.out.Unlock()
		now := p.now()
		p.bar.Describe(now.String())
		if now.size > 0 {
			p.bar.ChangeMax64(now.size + 1) // it is not finished before it is told so
			p.bar.Set64(now.bytes)
		}
	})
	return func() {
		stopTicker()
		p.bar.Finish()
	}
}

// say prints a line above the bar.
func (p *progress) say(line string) {
	p.out.Lock()
	defer p.out.Unlock()
	if p.bar != nil {
		p.bar.Clear()
	}
	fmt.Fprintln(p.stderr, line)
}
