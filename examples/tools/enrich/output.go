package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
)

// saveEvery is the time between checkpoints. After a kill, the rows of this time are looked
// up again.
const saveEvery = 500 * time.Millisecond

const failedHead = "line,card,kind,reason\n"

// An output is the files that a run writes. Rows are written before the checkpoint that
// counts them. Resuming truncates the files at the checkpoint and writes later rows again.
//
// The state file holds the settings and the last checkpoint. It is replaced as a whole,
// and holds no card.
type output struct {
	config *config
	rows   *appender
	failed *appender
	state  state
	at     checkpoint
	hash   hash.Hash // of the rows written, as they were read
	before float64   // seconds of the runs that this one continues
	begun  time.Time
	saved  time.Time
}

// A state is what a run remembers after a kill.
type state struct {
	Settings   settings   `json:"settings"`
	Checkpoint checkpoint `json:"checkpoint"`
}

// settings are the flags that change the rows. A resumed run must have the same.
type settings struct {
	Version   int    `json:"version"`
	Delimiter string `json:"delimiter,omitzero"`
	Column    string `json:"column,omitzero"`
	Field     string `json:"field,omitzero"`
	Columns   string `json:"columns"`
	Failed    string `json:"failed"`
	Enhanced  bool   `json:"enhanced"`
	Prefix    int    `json:"prefix"`
	Sandbox   bool   `json:"sandbox"`
}

// A checkpoint is how far a run has come. The files are synced before it is written, so
// they are at least as long as it says.
type checkpoint struct {
	Input    int64  `json:"input"`  // bytes read
	Hash     string `json:"hash"`   // of their rows
	Output   int64  `json:"output"` // bytes written
	Failed   int64  `json:"failed"` // bytes written
	Totals   totals `json:"totals"`
	Complete bool   `json:"complete,omitzero"`
}

func (c *config) statePath() string {
	if c.out == standard || c.out == "" {
		return ""
	}
	return c.out + ".state"
}

func (c *config) settings() settings {
	return settings{Version: 5, Delimiter: c.delimiter, Column: c.column, Field: c.field,
		Columns: c.columns, Failed: c.failed, Enhanced: c.enhanced, Prefix: c.prefix, Sandbox: c.sandbox}
}

// openOutput opens the files. Unless the run is resumed, none may exist. All are readable by
// their owner only, because the rows hold cards.
func openOutput(c *config, head []byte) (_ *output, err error) {
	o := &output{config: c, hash: sha256.New(), begun: time.Now(), saved: time.Now()}
	defer func() {
		if err == nil {
			return
		}
		if o.close(); !c.resume && o.rows != nil && o.rows.file != nil {
			os.Remove(c.out) // it is new
		}
	}()
	o.state.Settings = c.settings()
	if c.out == standard {
		o.rows = &appender{Writer: bufio.NewWriterSize(c.stdout, 1<<16)}
	} else if o.rows, err = openAppender(c.out, c.resume); err != nil {
		return nil, err
	}
	if o.failed, err = openAppender(c.failed, c.resume); err != nil {
		return nil, err
	}
	if c.resume {
		if err := o.resume(); err != nil {
			return nil, err
		}
	}
	o.at.Totals.Runs++
	o.hash.Write(head)
	return o, errors.Join(o.rows.cut(o.at.Output, head), o.failed.cut(o.at.Failed, []byte(failedHead)))
}

// resume goes back to the last checkpoint.
func (o *output) resume() error {
	text, err := os.ReadFile(o.config.statePath())
	if errors.Is(err, fs.ErrNotExist) && o.rows.size+o.failed.size == 0 {
		return nil // killed before the first checkpoint
	}
	var before state
	if err != nil || json.Unmarshal(text, &before) != nil || before.Settings.Version == 0 {
		return cli.Usage("enrich: there is no state to resume %s from", o.config.out)
	}
	at := before.Checkpoint
	switch {
	case before.Settings != o.state.Settings:
		return cli.Usage("enrich: the run was begun with other flags, by another version, or not with the same of sandbox and service: -resume needs the same")
	case at.Output > o.rows.size || at.Failed > o.failed.size:
		return cli.Usage("enrich: the output is shorter than the run has left it: name another -out")
	case at.Complete && (o.rows.size > at.Output || o.failed.size > at.Failed):
		return cli.Usage("enrich: the run is complete, and what it wrote has grown since: name another -out")
	}
	o.before, o.at = at.Totals.Seconds, at
	o.at.Complete = false
	if at.Totals.Rows == 0 {
		o.at.Output, o.at.Failed = 0, 0 // write the header again: the input may have another
	}
	return nil
}

// skip reads the rows of an earlier run, and fails if they have changed since.
func (o *output) skip(in *input) error {
	rows, end := int64(0), int64(0)
	for ; rows < o.at.Totals.Rows; rows++ {
		r, err := in.next()
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		o.hash.Write(r.text)
		end = r.end
	}
	if rows != o.at.Totals.Rows || rows > 0 && (end != o.at.Input || o.sum() != o.at.Hash) {
		return cli.Usage("enrich: the input is not the one that the run began with: begin anew, with another -out")
	}
	return nil
}

func (o *output) sum() string { return hex.EncodeToString(o.hash.Sum(nil)) }

// advance writes a row to one of the files, and a checkpoint from time to time.
func (o *output) advance(r row, to *appender, text []byte) error {
	if err := to.write(text); err != nil {
		return err
	}
	o.at.Totals.Rows++
	if r.stripped {
		o.at.Totals.Stripped++
	}
	o.at.Input = r.end
	o.hash.Write(r.text)
	if time.Since(o.saved) < saveEvery {
		return nil
	}
	return o.save()
}

// save syncs the files and writes a checkpoint.
func (o *output) save() error {
	o.at.Hash = o.sum()
	o.at.Output, o.at.Failed = o.rows.size, o.failed.size
	o.at.Totals.Seconds = o.before + time.Since(o.begun).Seconds()
	err := errors.Join(o.rows.sync(), o.failed.sync())
	if err == nil && o.config.statePath() != "" {
		o.state.Checkpoint = o.at
		err = replaceFile(o.config.statePath(), o.state)
	}
	o.saved = time.Now()
	return err
}

func (o *output) close() {
	for _, a := range []*appender{o.rows, o.failed} {
		if a != nil && a.file != nil {
			a.file.Close()
		}
	}
}

// An appender is a file that grows, or standard output.
type appender struct {
	*bufio.Writer
	file *os.File // nil: standard output
	size int64    // with buffered bytes
}

// openAppender makes a file that only its owner can read. If existing is true, it opens one
// that is there already. The file is locked until the process ends.
func openAppender(path string, existing bool) (*appender, error) {
	var file *os.File
	err := fs.ErrNotExist
	if existing {
		file, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if errors.Is(err, fs.ErrNotExist) {
		file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, cli.Usage("enrich: %s exists: name another file, or give -resume to continue its run", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = cli.Usage("enrich: %s is not a file", path)
	}
	if err == nil {
		err = cli.Lock(file)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &appender{bufio.NewWriterSize(file, 1<<16), file, info.Size()}, nil
}

// cut cuts the file off at a size. At 0, it writes the head.
func (a *appender) cut(size int64, head []byte) error {
	if a.file != nil {
		if err := a.file.Truncate(size); err != nil {
			return err
		}
		if _, err := a.file.Seek(size, 0); err != nil {
			return err
		}
	}
	if a.size = size; size == 0 {
		return a.write(head)
	}
	return nil
}

func (a *appender) write(text []byte) error {
	a.size += int64(len(text))
	_, err := a.Write(text)
	return err
}

func (a *appender) sync() error {
	err := a.Flush()
	if err == nil && a.file != nil {
		err = a.file.Sync()
	}
	return err
}

// replaceFile writes JSON that only its owner can read in place of another file.
func replaceFile(path string, content any) error {
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".enrich-*")
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}
