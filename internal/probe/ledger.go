package probe

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
)

// A Ledger is a file that keeps what was sent and what was seen, one JSON object
// a line. A line is on the disk before its request is sent, so that a run which
// was killed never sends it again. It holds no value, credential or id.
type Ledger struct {
	file *os.File
	key  []byte
	run  int

	mu   sync.Mutex // connections are watched beside the requests
	sent map[string]bool
	seen facts
	of   string // the service of the run that is under way
}

// facts are what was seen of the entries, by their ids.
type facts map[string]*Fact

// A line is one of the ledger. Exactly one member is set.
type line struct {
	Key      []byte `json:"key,omitempty"`      // of the digests in the facts
	Of       string `json:"of,omitempty"`       // digest of the base URLs
	Sent     string `json:"sent,omitempty"`     // an entry, before it is sent
	Seen     *Fact  `json:"seen,omitempty"`     // what came of it
	Finished int    `json:"finished,omitempty"` // the run is complete: the next one begins anew
}

// OpenLedger opens or creates the ledger at path.
func OpenLedger(path string) (*Ledger, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if err := lock(file); err != nil {
		file.Close()
		return nil, errors.New("ledger: another probe uses it")
	}
	l := &Ledger{file: file, run: 1, sent: map[string]bool{}, seen: facts{}}
	if err := l.read(); err != nil {
		file.Close()
		return nil, err
	}
	if l.key == nil {
		l.key = make([]byte, 32)
		rand.Read(l.key)
		return l, l.write(line{Key: l.key})
	}
	return l, nil
}

// read takes in the lines. A last line that was cut off by a kill is removed: its
// request had not been sent.
func (l *Ledger) read() error {
	reader := bufio.NewReader(l.file)
	var whole int64
	for {
		text, err := reader.ReadBytes('\n')
		if err == io.EOF {
			if err := l.file.Truncate(whole); err != nil {
				return fmt.Errorf("ledger: %w", err)
			}
			_, err := l.file.Seek(whole, io.SeekStart)
			return err
		}
		if err != nil {
			return fmt.Errorf("ledger: %w", err)
		}
		var entry line
		if err := json.Unmarshal(bytes.TrimSpace(text), &entry); err != nil {
			return errors.New("ledger: not a ledger of this program")
		}
		whole += int64(len(text))
		switch {
		case entry.Key != nil:
			l.key = entry.Key
		case entry.Of != "":
			l.of = entry.Of
		case entry.Sent != "":
			l.sent[entry.Sent] = true
		case entry.Seen != nil:
			l.seen[entry.Seen.Entry] = entry.Seen
		case entry.Finished > 0:
			l.run, l.sent, l.seen, l.of = entry.Finished+1, map[string]bool{}, facts{}, ""
		}
	}
}

func (l *Ledger) write(entry line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case entry.Sent != "":
		l.sent[entry.Sent] = true
	case entry.Seen != nil:
		l.seen[entry.Seen.Entry] = entry.Seen
	}
	text, err := json.Marshal(entry)
	if err == nil {
		_, err = l.file.Write(append(text, '\n'))
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// Run is the number of the run that is under way.
func (l *Ledger) Run() int { return l.run }

// Seen is what was seen so far in this run.
func (l *Ledger) Seen() facts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.seen)
}

func (l *Ledger) wasSent(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent[id]
}

// claim keeps the facts about two services apart.
func (l *Ledger) claim(service string) error {
	if l.of != "" && l.of != service {
		return errors.New("ledger: it has an unfinished run with another service: name another file")
	}
	return l.write(line{Of: service})
}

func (l *Ledger) begin(id string) error { return l.write(line{Sent: id}) }
func (l *Ledger) keep(f *Fact) error    { return l.write(line{Seen: f}) }
func (l *Ledger) finish() error         { return l.write(line{Finished: l.run}) }

// Close closes the file.
func (l *Ledger) Close() error { return l.file.Close() }
