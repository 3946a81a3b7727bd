package main

import (
	"bufio"
	"bytes"
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
// A card number is never written to it: see learn.
type stateFile struct {
	file    *os.File
	buffer  *bufio.Writer
	begun   bool // before this run
	answers []answer
	points  []checkpoint
}

// A stateLine is one line: one of its members is set.
type stateLine struct {
	Run        *settingsLine `json:"run,omitzero"`
	Answer     *answer       `json:"answer,omitzero"`
	Checkpoint *checkpoint   `json:"checkpoint,omitzero"`
}

// settingsLine is what a resumed run must be told again, because other rows
// would come of it.
type settingsLine struct {
	Column   string `json:"column,omitzero"`
	Field    string `json:"field,omitzero"`
	Lines    bool   `json:"lines,omitzero"`
	Columns  string `json:"columns"`
	Failed   string `json:"failed"`
	Enhanced bool   `json:"enhanced"`
	Ranges   bool   `json:"ranges"`
	Prefix   int    `json:"prefix"`
}

// A checkpoint is how far the rows have come. The files are at least as long as
// it says: they are written, and on the disk, before it is.
type checkpoint struct {
	Input  int64  `json:"input"`  // bytes read
	Output int64  `json:"output"` // bytes written
	Failed int64  `json:"failed"` // bytes written
	Totals totals `json:"totals"`
}

// openState opens the state file and reads what it holds, or creates it empty.
func openState(path string, now settingsLine) (*stateFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	s := &stateFile{file: file, buffer: bufio.NewWriterSize(file, 1<<16)}
	if err := s.load(now); err != nil {
		file.Close()
		return nil, err
	}
	return s, nil
}

// load reads the file up to its last whole line, and cuts it off there, so that
// the next line does not continue a torn one. A line inside that is not to be
// read, as a crash of the machine may leave it, costs no more than itself.
func (s *stateFile) load(now settingsLine) error {
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
		case line.Run != nil && *line.Run != now:
			return target.Usage("bulk: the run was begun with other flags: -resume needs the same")
		case line.Run != nil:
			s.begun = true
		case line.Answer != nil:
			s.answers = append(s.answers, *line.Answer)
		case line.Checkpoint != nil:
			s.points = append(s.points, *line.Checkpoint)
		}
	}
	if whole > 0 && !s.begun {
		return target.Usage("bulk: %s is not the state of a run", s.file.Name())
	}
	if err := s.file.Truncate(whole); err != nil {
		return err
	}
	_, err := s.file.Seek(whole, io.SeekStart)
	return err
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

// append adds a line; it is kept in memory for the next one that is not.
func (s *stateFile) append(line stateLine, flush bool) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := s.buffer.Write(append(text, '\n')); err != nil || !flush {
		return err
	}
	return s.buffer.Flush()
}

// finish leaves the settings and the last checkpoint: resuming a run that is
// complete is no error, and the answers are needed no more.
func (s *stateFile) finish(now settingsLine, end checkpoint) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, line := range []stateLine{{Run: &now}, {Checkpoint: &end}} {
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	path := s.file.Name()
	if err := s.file.Close(); err != nil {
		return err
	}
	// A kill in between leaves the one or the other.
	if err := os.WriteFile(path+".new", text.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
