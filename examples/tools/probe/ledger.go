package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
)

// A ledger is a file of what was sent and what was seen, one JSON object a line. The line
// is on disk before its request is sent, so no later run sends it again. It holds no value,
// credential or id of the caller.
type ledger struct {
	file    *os.File
	run     string
	service string

	sent map[string]bool
	seen map[string]*fact
}

// A line of the ledger has exactly one member.
type line struct {
	Run     string `json:"run,omitempty"`     // in the ids of the refunds
	Service string `json:"service,omitempty"` // digest of the base URLs
	Sent    string `json:"sent,omitempty"`    // an entry, before it is sent
	Seen    *fact  `json:"seen,omitempty"`    // what came of it
}

func openLedger(path string) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l := &ledger{file: file, sent: map[string]bool{}, seen: map[string]*fact{}}
	if err = cli.Lock(file); err != nil {
		err = fmt.Errorf("ledger: %w", err)
	} else if err = l.read(); err == nil && l.run == "" {
		err = l.write(line{Run: rand.Text()[:10]})
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return l, nil
}

func (l *ledger) close() { l.file.Close() }

// read reads the lines. It removes a last line that a kill has cut off: its request was
// not sent.
func (l *ledger) read() error {
	reader := bufio.NewReader(l.file)
	var whole int64
	for {
		text, err := reader.ReadBytes('\n')
		if err == io.EOF {
			if err = l.file.Truncate(whole); err == nil {
				_, err = l.file.Seek(whole, io.SeekStart)
			}
		}
		if err != nil || len(text) == 0 || text[len(text)-1] != '\n' {
			if err != nil {
				err = fmt.Errorf("ledger: %w", err)
			}
			return err
		}
		var one line
		in := json.NewDecoder(bytes.NewReader(text))
		in.DisallowUnknownFields()
		if in.Decode(&one) != nil {
			return errors.New("ledger: not a ledger of this program")
		}
		whole += int64(len(text))
		l.take(one)
	}
}

func (l *ledger) take(one line) {
	switch {
	case one.Run != "":
		l.run = one.Run
	case one.Service != "":
		l.service = one.Service
	case one.Sent != "":
		l.sent[one.Sent] = true
	case one.Seen != nil:
		l.seen[one.Seen.Entry] = one.Seen
	}
}

func (l *ledger) write(one line) error {
	text, err := json.Marshal(one)
	if err == nil {
		_, err = l.file.Write(append(text, '\n'))
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	l.take(one)
	return nil
}

// claim refuses a ledger of another service.
func (l *ledger) claim(service string) error {
	switch l.service {
	case service:
		return nil
	case "":
		return l.write(line{Service: service})
	}
	return errors.New("ledger: it is about other base URLs: name another file")
}
