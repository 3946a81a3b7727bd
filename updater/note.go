package updater

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
)

// A note says what the bytes of a partial file are.
type note struct {
	Resource string  `json:"resource"` // of what; a hash
	Boot     string  `json:"boot"`     // the machine's run that wrote them
	Version  version `json:"version"`
	Whole    int64   `json:"whole"` // bytes without a gap; -1: all in the file
}

const maxNote = 64 << 10

func (p *partial) noteName() string { return p.name + ".json" }

func (p *partial) newNoteName() string { return p.noteName() + ".new" }

// kept returns the version of the content whose beginning an earlier call left,
// and how much of it can be built upon. The last byte is asked for again, so that
// also a whole content is found to be current.
func (p *partial) kept(resource string) (version, int64) {
	info, err := p.file.Stat()
	if err != nil || info.Size() == 0 {
		return version{}, 0
	}
	n, err := p.readNote()
	whole := info.Size()
	if n.Whole >= 0 {
		whole = min(whole, n.Whole)
	}
	// After a crash of the machine the file may have any content.
	if err != nil || n.Resource != resource || n.Boot != bootID() || n.Version.Validator == "" ||
		n.Version.Length >= 0 && whole > n.Version.Length || whole <= 1 {
		return version{}, 0
	}
	return n.Version, whole - 1
}

func (p *partial) readNote() (n note, err error) {
	info, err := p.root.Lstat(p.noteName())
	if err != nil {
		return n, err
	}
	if !isOwn(info) || info.Size() > maxNote {
		return n, fs.ErrInvalid
	}
	file, err := p.root.Open(p.noteName())
	if err != nil {
		return n, err
	}
	defer file.Close()
	if !p.isNamed(file) {
		return n, fs.ErrInvalid
	}
	data, err := io.ReadAll(io.LimitReader(file, maxNote))
	if err != nil {
		return n, err
	}
	return n, json.Unmarshal(data, &n)
}

// writeNote replaces the note as a whole.
func (p *partial) writeNote(resource string, v version, whole int64) error {
	data, err := json.Marshal(note{Resource: resource, Boot: bootID(), Version: v, Whole: whole})
	if err != nil {
		return err
	}
	name := p.newNoteName()
	if err := p.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := p.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = file.Chmod(0o600) // what the umask took away
	if err == nil {
		_, err = file.Write(data)
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = p.root.Rename(name, p.noteName())
	}
	if err != nil {
		p.root.Remove(name)
	}
	return err
}
