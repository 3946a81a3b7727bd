package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"io"
	"os"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// The state file is what a run remembers beyond being killed: lines of JSON that
// are only ever appended. The first line says what the run was told to do. Then
// come, in any order, the answers of the service and checkpoints, of which the
// last one counts.
//
// Why not the output alone? It tells which rows are answered, but neither what
// the service said beyond the chosen columns, such as the range that an answer
// holds for, nor which rows failed. And why not a database? Appending a line
// needs none, and a line cut off by the kill is easily told from a whole one.
//
// A card number is never written to it: see learn. For as long as it is open it is
// locked, and with it the output.
type stateFile struct {
	file    *os.File
	buffer  *bufio.Writer
	run     *settingsLine // nil: none has begun
	answers []answer
	points  []checkpoint
}

// A stateLine is one line: one of its members is set.
type stateLine struct {
	Run        *settingsLine `json:"run,omitzero"`
	Answer     *answer       `json:"answer,omitzero"`
	Checkpoint *checkpoint   `json:"checkpoint,omitzero"`
}

// stateVersion is that of the state file. A run is not resumed from another.
const stateVersion = 2

// settingsLine is what a resumed run must be told again, because other rows
// would come of it.
type settingsLine struct {
	Version        int    `json:"version"`
	Delimiter      string `json:"delimiter,omitzero"`
	KeepFailed     bool   `json:"keep_failed,omitzero"`
	Column         string `json:"column,omitzero"`
	Field          string `json:"field,omitzero"`
	Lines          bool   `json:"lines,omitzero"`
	Columns        string `json:"columns"`
	Failed         string `json:"failed"`
	Enhanced       bool   `json:"enhanced"`
	Ranges         bool   `json:"ranges"`
	Prefix         int    `json:"prefix"`
	KeepSeparators bool   `json:"keep_separators"`
	Live           bool   `json:"live"`                  // and not the sandbox
	RetryFailed    string `json:"retry_failed,omitzero"` // a digest of the lines
}

// A checkpoint is how far the rows have come. The files are at least as long as
// it says: they are written, and on the disk, before it is.
type checkpoint struct {
	Input    int64  `json:"input"`  // bytes read
	Hash     string `json:"hash"`   // of them
	Output   int64  `json:"output"` // bytes written
	Failed   int64  `json:"failed"` // bytes written
	Totals   totals `json:"totals"`
	Complete bool   `json:"complete,omitzero"`

	sum    [sha256.Size]byte // what Hash is made of
	paused bool              // because the service fails
}

// openState creates a state file or, where existing is true, reads what one holds.
func openState(path string, existing bool) (*stateFile, error) {
	file, err := openPrivate(path, existing)
	if err != nil {
		return nil, err
	}
	s := &stateFile{file: file, buffer: bufio.NewWriterSize(file, 1<<16)}
	if err = lockFile(file); err == nil {
		err = s.load()
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return s, nil
}

// load reads the file up to its last whole line, and cuts it off there, so that
// the next line does not continue a torn one. A line inside that is not to be
// read, as a crash of the machine may leave it, costs no more than itself.
func (s *stateFile) load() error {
	lines := bufio.NewReader(s.file)
	whole := int64(0)
	for {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		whole += int64(len(text))
		var line stateLine
		if json.Unmarshal(text, &line) != nil {
			continue
		}
		switch {
		case line.Run != nil:
			s.run = line.Run
		case line.Answer != nil:
			s.answers = append(s.answers, *line.Answer)
		case line.Checkpoint != nil:
			s.points = append(s.points, *line.Checkpoint)
			if line.Checkpoint.Complete {
				s.answers = nil // of no more use
			}
		}
	}
	if whole > 0 && s.run == nil {
		return target.Usage("bulk: %s is not the state of a run", target.Path(s.file.Name()))
	}
	if err := s.file.Truncate(whole); err != nil {
		return err
	}
	_, err := s.file.Seek(whole, io.SeekStart)
	return err
}

// take returns the answers, which are of use once.
func (s *stateFile) take() (answers []answer) {
	if s != nil {
		answers, s.answers = s.answers, nil
	}
	return answers
}

func (s *stateFile) complete() bool {
	return len(s.points) > 0 && s.points[len(s.points)-1].Complete
}

// reached returns the last checkpoint that the files reach, in case the machine
// crashed, or that somebody removed them.
func (s *stateFile) reached(output, failed int64) checkpoint {
	for i := len(s.points) - 1; i >= 0; i-- {
		if p := s.points[i]; p.Output <= output && p.Failed <= failed {
			return p
		}
	}
	return checkpoint{}
}

// flush writes what append has kept. There is no state of a run whose output is a
// pipe.
func (s *stateFile) flush() error {
	if s == nil {
		return nil
	}
	return s.buffer.Flush()
}

// append adds a line; it is kept in memory for the next one that is not.
func (s *stateFile) append(line stateLine, flush bool) error {
	if s == nil {
		return nil
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := s.buffer.Write(append(text, '\n')); err != nil || !flush {
		return err
	}
	return s.buffer.Flush()
}
