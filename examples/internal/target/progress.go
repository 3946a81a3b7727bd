package target

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Every calls f at intervals, until the function returned is called.
func Every(interval time.Duration, f func()) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-stopped
	}
}

// A Bar is a line of a terminal that shows how far a program has come.
type Bar struct {
	out   io.Writer
	width func() int // of the terminal, in cells; 0 is not known

	mu    sync.Mutex
	shown int // cells
}

// OpenBar returns a bar that is drawn with its first Show, or nil where out is no terminal. The functions are those of
// golang.org/x/term, which this module does not depend on.
func OpenBar(out io.Writer, isTerminal func(fd int) bool, getSize func(fd int) (width, height int, err error)) *Bar {
	file, ok := out.(*os.File)
	if !ok || !isTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &Bar{out: file, width: func() int {
		width, _, _ := getSize(int(file.Fd()))
		return width
	}}
}

// Show draws the line anew: a bar as long as the share of the work that is done, and
// beside it as many facts as have room, the most important first. A negative share is
// not known, and has no bar.
func (b *Bar) Show(share float64, facts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := barLine(share, facts, b.erase()-1)
	b.shown = utf8.RuneCountInString(text)
	io.WriteString(b.out, text)
}

// Print prints a line above the bar, which the next Show draws again.
func (b *Bar) Print(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	fmt.Fprintln(b.out, line)
}

// Erase takes the bar away.
func (b *Bar) Erase() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
}

func (b *Bar) erase() (width int) {
	if width = b.width(); width < 1 {
		width = 80
	}
	if b.shown > 0 {
		// A terminal that became narrower has wrapped the line.
		up := strings.Repeat("\x1b[A", (b.shown-1)/width)
		io.WriteString(b.out, up+"\r\x1b[J")
	}
	b.shown = 0
	return width
}

const (
	leastBar = 10 // cells within its brackets
	mostBar  = 40
)

func barLine(share float64, facts []string, width int) string {
	if share < 0 {
		return fit(facts, width)
	}
	share = min(1, share)
	percent := fmt.Sprintf("%3d%% ", int(100*share))
	text := fit(facts, width-len(percent)-leastBar-len("[] "))
	cells := min(mostBar, width-len(percent)-utf8.RuneCountInString(text)-len("[] "))
	if text == "" || cells < leastBar {
		return fit(facts, width)
	}
	full := int(share * float64(cells))
	return percent + "[" + strings.Repeat("=", full) + strings.Repeat(" ", cells-full) + "] " + text
}

// fit joins as many facts as have room.
func fit(facts []string, width int) string {
	text := ""
	for i, fact := range facts {
		if i > 0 {
			fact = ", " + fact
		}
		if utf8.RuneCountInString(text+fact) > width {
			break
		}
		text += fact
	}
	return text
}
