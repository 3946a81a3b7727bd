package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/target"
)

// An output is the files that a run writes. They advance together: answers first,
// then rows, then the checkpoint that makes the rows count. Resuming cuts the rows
// off at the last checkpoint, be that in the middle of one that the kill has torn
// or not, and makes those after it again, of answers that are in the state file.
type output struct {
	mu     sync.Mutex // for the goroutines that save and that show progress
	rows   *appender
	failed *appender
	state  *stateFile
	now    settingsLine
	at     checkpoint
	before totals // of the runs that this one goes on with
	begun  time.Time
	saved  int64 // rows, by the last checkpoint
	err    error // of a save
}

const failedHead = "line,card,kind,reason\n"

// openOutput opens the files, of which there are none yet unless the run is
// resumed. All of them are readable for their owner only: the rows hold cards.
func openOutput(c *config, now settingsLine, head []byte) (*output, error) {
	statePath := c.out + ".state"
	if !c.resume {
		for _, path := range []string{statePath, c.out, c.failed} {
			if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
				return nil, target.Usage("bulk: %s exists: give -resume to go on with it, or another -out", path)
			}
		}
	}
	o := &output{now: now, begun: time.Now()}
	var err error
	if o.state, err = openState(statePath, now); err != nil {
		return nil, err
	}
	if o.rows, err = openAppender(c.out); err == nil {
		o.failed, err = openAppender(c.failed)
	}
	if err == nil {
		err = o.begin(head)
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// begin goes back to the last checkpoint, or writes the first.
func (o *output) begin(head []byte) error {
	if !o.state.begun {
		// Resuming must not cut off what no run has written.
		for _, a := range []*appender{o.rows, o.failed} {
			if a.size > 0 {
				return target.Usage("bulk: there is no state to resume %s from", a.file.Name())
			}
		}
		if err := o.state.append(stateLine{Run: &o.now}, true); err != nil {
			return err
		}
	}
	o.at = o.state.reached(o.rows.size, o.failed.size)
	o.before = o.at.Totals
	o.at.Totals = o.before.clone()
	o.at.Totals.Runs++
	o.saved = o.at.Totals.Rows
	if err := errors.Join(o.rows.cut(o.at.Output, head), o.failed.cut(o.at.Failed, []byte(failedHead))); err != nil {
		return err
	}
	return o.save()
}

// row writes an answered row, and keeps the answer if it is a new one.
func (o *output) row(text []byte, known bool, a *answer, reused bool, input int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a != nil {
		if err := o.state.append(stateLine{Answer: a}, false); err != nil {
			return err
		}
	}
	if !known {
		o.at.Totals.Unknown++
	}
	if reused {
		o.at.Totals.Cached++
	}
	o.at.Totals.Answered++
	return o.advance(o.rows, text, input)
}

// fail writes a row to the failed file.
func (o *output) fail(r row, p *problem, reused bool, input int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if reused {
		o.at.Totals.Cached++
	}
	o.at.Totals.fail(p.kind)
	// An identifier masks itself.
	text := fmt.Appendf(nil, "%d,%s,%s,%s\n", r.line, quote(bins.NewIdentifier(r.card).String()), p.kind, quote(p.text))
	return o.advance(o.failed, text, input)
}

func (o *output) advance(to *appender, text []byte, input int64) error {
	if o.err != nil {
		return o.err
	}
	o.at.Totals.Rows++
	o.at.Input = input
	return to.write(text)
}

// progress takes what the library says about its requests. It is called after
// each of them, which is the moment to let the answers before it leave the
// process: from then on no kill loses them.
func (o *output) progress(p bins.BulkProgress) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = cmp.Or(o.err, o.state.buffer.Flush())
	t := &o.at.Totals
	t.Distinct, t.Requests, t.Retries = o.before.Distinct+p.Distinct, o.before.Requests+p.Requests, o.before.Retries+p.Retries
}

// conflicts takes how many answers contradict the assumption of -ranges.
func (o *output) conflicts(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at.Totals.Conflicts = n
}

// position tells how far the run has come.
func (o *output) position() checkpoint {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.at
	at.Totals.Seconds = o.before.Seconds + time.Since(o.begun).Seconds()
	at.Totals = at.Totals.clone()
	return at
}

// save brings everything to the disk and writes a checkpoint.
func (o *output) save() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := errors.Join(o.err, o.state.buffer.Flush(), o.rows.sync(), o.failed.sync())
	if err == nil {
		o.at.Output, o.at.Failed = o.rows.size, o.failed.size
		o.at.Totals.Seconds = o.before.Seconds + time.Since(o.begun).Seconds()
		err = o.state.append(stateLine{Checkpoint: &o.at}, true)
	}
	o.err, o.saved = err, o.at.Totals.Rows
	return err
}

// saveIfNew is save, unless no row has come since the last.
func (o *output) saveIfNew() {
	o.mu.Lock()
	same := o.saved == o.at.Totals.Rows || o.err != nil
	o.mu.Unlock()
	if !same {
		o.save() // its error shows at the next row
	}
}

func (o *output) finish() error { return o.state.finish(o.now, o.at) }

func (o *output) close() {
	for _, a := range []*appender{o.rows, o.failed} {
		if a != nil {
			a.file.Close()
		}
	}
	o.state.file.Close()
}

// An appender is a file that grows.
type appender struct {
	file   *os.File
	buffer *bufio.Writer
	size   int64 // what is buffered included
	synced int64
}

func openAppender(path string) (*appender, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &appender{file: file, buffer: bufio.NewWriterSize(file, 1<<16), size: size}, nil
}

// cut keeps so much of the file. If that is nothing, the head is written.
func (a *appender) cut(size int64, head []byte) error {
	if err := a.file.Truncate(size); err != nil {
		return err
	}
	_, err := a.file.Seek(size, io.SeekStart)
	a.size, a.synced = size, size
	if size == 0 && err == nil {
		err = a.write(head)
	}
	return err
}

func (a *appender) write(text []byte) error {
	a.size += int64(len(text))
	_, err := a.buffer.Write(text)
	return err
}

func (a *appender) sync() error {
	if a.synced == a.size {
		return nil
	}
	a.synced = a.size
	return errors.Join(a.buffer.Flush(), a.file.Sync())
}
