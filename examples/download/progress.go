package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/term"

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
	bar    *target.Bar // nil where no terminal is
}

type fileProgress struct {
	updater.FileProgress
	begun, done bool
	kept        int64 // by an earlier run
}

func newProgress(stderr io.Writer, files int) *progress {
	return &progress{files: make([]fileProgress, files), stderr: stderr, bar: target.OpenBar(stderr, term.IsTerminal, term.GetSize)}
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

// share is -1 while the size is not known.
func (s snapshot) share() float64 {
	if s.size <= 0 {
		return -1
	}
	return float64(s.bytes) / float64(s.size)
}

// facts are what is to be said, the most important first.
func (s snapshot) facts() []string {
	facts := []string{s.amount()}
	if got := s.bytes - s.kept; got > 0 && s.took > 0 {
		rate := float64(got) / s.took.Seconds()
		facts = append(facts, humanize.IBytes(uint64(rate))+"/s")
		if s.size >= 0 {
			left := time.Duration(float64(s.size-s.bytes) / rate * float64(time.Second))
			facts = append(facts, left.Round(time.Second).String()+" left")
		}
	}
	if s.resumes > 0 {
		facts = append(facts, "resumed "+humanize.Comma(int64(s.resumes))+"×")
	}
	if s.files > 1 {
		facts = append(facts, fmt.Sprintf("%d of %d files", s.done, s.files))
	}
	return facts
}

// show shows p until the function returned is called: as a bar on a terminal,
// and otherwise as a line every few seconds.
func (p *progress) show() (stop func()) {
	if p.bar == nil {
		return target.Every(lineEvery, func() { p.say(strings.Join(p.now().facts(), ", ")) })
	}
	stopTicker := target.Every(barEvery, func() {
		now := p.now()
		p.bar.Show(now.share(), now.facts())
	})
	return func() {
		stopTicker()
		p.bar.Erase()
	}
}

// say prints a line above the bar.
func (p *progress) say(line string) {
	if p.bar != nil {
		p.bar.Print(line)
		return
	}
	p.out.Lock()
	defer p.out.Unlock()
	fmt.Fprintln(p.stderr, line)
}
