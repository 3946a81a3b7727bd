package main

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	at     checkpoint
	before totals // of the runs that this one goes on with
	begun  time.Time
	saved  int64 // rows, by the last checkpoint
	err    error // of a save
	paused bool  // because the service fails
}

var errUnanswered = errors.New("the service does not answer")

const failedHead = "line,card,kind,reason\n"

// openOutput opens the files, of which there are none yet unless the run is
// resumed. All of them are readable for their owner only: the rows hold cards.
func openOutput(c *config, now settingsLine, head []byte, stdout io.Writer) (*output, error) {
	if c.out == standard {
		return openPipe(c, head, stdout)
	}
	if !c.resume {
		if err := c.refuseExisting(); err != nil {
			return nil, err
		}
	}
	state, err := openState(c.statePath(), c.resume)
	if err != nil {
		return nil, err
	}
	o := &output{state: state, begun: time.Now()}
	switch {
	case state.run == nil || *state.run == now:
	case state.run.Version != now.Version:
		err = target.Usage("bulk: %s is of another version of this program: begin anew, with another -out", target.Path(c.statePath()))
	default:
		err = target.Usage("bulk: the run was begun with other flags, or not with the same of sandbox and live service: -resume needs the same")
	}
	if err == nil {
		o.rows, err = openAppender(c.out, c.resume)
	}
	if err == nil {
		o.failed, err = openAppender(c.failed, c.resume)
	}
	if err == nil {
		err = o.begin(now, head)
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// openPipe writes to standard output, from which no run can be resumed: there is
// no state to remember.
func openPipe(c *config, head []byte, stdout io.Writer) (*output, error) {
	o := &output{begun: time.Now(), rows: &appender{buffer: bufio.NewWriterSize(stdout, 1<<16)}}
	o.at.Totals.Runs = 1
	if c.failed != "" {
		var err error
		if o.failed, err = openAppender(c.failed, false); err != nil {
			return nil, err
		}
		if err := o.failed.write([]byte(failedHead)); err != nil {
			o.close()
			return nil, err
		}
	}
	return o, o.rows.write(head)
}

// refuseExisting says what to do about the files of a run that is not resumed.
func (c *config) refuseExisting() error {
	for _, path := range []string{c.statePath(), c.out, c.failed} {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if path != c.statePath() {
			return target.Usage("bulk: %s exists: name another file", target.Path(path))
		}
		state, err := openState(path, true)
		if err != nil {
			return err
		}
		defer state.file.Close()
		if state.complete() {
			return target.Usage("bulk: %s exists: that run is complete, name another -out", target.Path(path))
		}
		return target.Usage("bulk: %s exists: give -resume to go on with it, or another -out", target.Path(path))
	}
	return nil
}

// begin goes back to the last checkpoint.
func (o *output) begin(now settingsLine, head []byte) error {
	if o.state.run == nil {
		// Resuming must not cut off what no run has written.
		for _, a := range []*appender{o.rows, o.failed} {
			if a.size > 0 {
				return target.Usage("bulk: there is no state to resume %s from", target.Path(a.file.Name()))
			}
		}
		if err := o.state.append(stateLine{Run: &now}, true); err != nil {
			return err
		}
	}
	o.at = o.state.reached(o.rows.size, o.failed.size)
	if o.at.Complete && (o.rows.size > o.at.Output || o.failed.size > o.at.Failed) {
		return target.Usage("bulk: the run is complete, and what it wrote has grown since: name another -out")
	}
	if o.at.Totals.Rows == 0 {
		o.at.Output, o.at.Failed = 0, 0 // the input may have another header by now
	}
	o.before = o.at.Totals
	o.at.Totals = o.before.clone()
	o.at.Totals.Runs++
	o.at.Complete = false
	if sum, err := hex.DecodeString(o.at.Hash); err == nil {
		copy(o.at.sum[:], sum)
	}
	return errors.Join(o.rows.cut(o.at.Output, head), o.failed.cut(o.at.Failed, []byte(failedHead)))
}

// succeed writes an answered row, and keeps the answer if it is a new one.
func (o *output) succeed(in *input, r row, text []byte, result *bins.BulkResult, a *answer) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a != nil {
		if err := o.state.append(stateLine{Answer: a}, false); err != nil {
			return err
		}
	}
	if _, err := result.Result.Card(); err == nil {
		o.at.Totals.Known++
	} else {
		o.at.Totals.Unknown++
	}
	o.count(result.Reused)
	return o.advance(in, r, o.rows, text)
}

// fail writes a row to the failed file whose request has failed.
func (o *output) fail(in *input, r row, p *problem, reused bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count(reused)
	return o.writeFailed(in, r, p)
}

// keep writes a row to the output that has no answer, with the reason in its
// columns.
func (o *output) keep(in *input, r row, text []byte, p *problem, reused bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count(reused)
	o.at.Totals.fail(p.kind)
	o.at.Totals.Kept++
	return o.advance(in, r, o.rows, text)
}

// reject writes a row to the failed file for which nothing can be asked.
func (o *output) reject(in *input, r row) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writeFailed(in, r, r.bad)
}

func (o *output) count(reused bool) {
	if reused {
		o.at.Totals.Cached++
	}
}

func (o *output) writeFailed(in *input, r row, p *problem) error {
	o.at.Totals.fail(p.kind)
	// An identifier masks itself.
	text := fmt.Appendf(nil, "%d,%s,%s,%s\n", r.line, quote(bins.NewIdentifier(r.card).String()), p.kind, quote(p.text))
	return o.advance(in, r, o.failed, text)
}

func (o *output) advance(in *input, r row, to *appender, text []byte) error {
	if o.err != nil {
		return o.err
	}
	if r.stripped {
		o.at.Totals.Stripped++
	}
	o.at.Totals.Rows++
	o.at.Input, o.at.sum = in.offset, in.sum()
	return to.write(text)
}

// progress takes what the library says about its requests. It is called after
// each of them, which is the moment to let the answers before it leave the
// process: from then on no kill loses them.
func (o *output) progress(p bins.BulkProgress) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = cmp.Or(o.err, o.state.flush())
	o.paused = p.Paused
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
	return o.reached()
}

func (o *output) reached() checkpoint {
	at := o.at
	at.Output, at.Failed, at.Hash = o.rows.length(), o.failed.length(), hex.EncodeToString(at.sum[:])
	at.paused = o.paused
	at.Totals = at.Totals.clone()
	at.Totals.Seconds = o.before.Seconds + time.Since(o.begun).Seconds()
	return at
}

// end makes the last checkpoint.
func (o *output) end(complete bool) error {
	o.mu.Lock()
	o.at.Complete = complete
	o.mu.Unlock()
	return o.save()
}

// save brings everything to the disk and writes a checkpoint.
func (o *output) save() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := errors.Join(o.err, o.state.flush(), o.rows.sync(), o.failed.sync())
	if err == nil {
		at := o.reached()
		err = o.state.append(stateLine{Checkpoint: &at}, true)
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

func (o *output) close() {
	o.rows.close()
	o.failed.close()
	if o.state != nil {
		o.state.file.Close()
	}
}
