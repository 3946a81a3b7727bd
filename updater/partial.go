package updater

import (
	"context"
	"encoding/json"
	"errors"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/carddata/carddata-go/internal/fault"
)

var errUnderWay = fault.NewError("another download to the same path is under way", ErrBusy)

// A partial is the private file for content that is still arriving, .NAME.part beside its path.
// It is locked from openPartial to close, so only one download writes it.
//
// The metadata in .NAME.part.json says what it is a part of. They are written while the part is
// empty, so the process may be killed at any moment. Once the part has taken its path, they
// describe the file there, for the next call with IfChanged.
type partial struct {
	path     string // of the complete file
	name     string // of the part
	resource string
	file     *os.File
	begun    bool // the metadata are those of this part
	useless  bool // no later call can continue it
	placed   bool // it is at its path
}

// metadata describes the bytes of a part or of a complete file.
type metadata struct {
	Format   int     `json:"format"`
	Resource string  `json:"resource"` // a hash that identifies the result
	Version  version `json:"version"`

	// For a complete file:
	Size     int64  `json:"size,omitempty"`
	Modified int64  `json:"modified,omitempty"` // in nanoseconds since 1970
	SHA256   string `json:"sha_256,omitempty"`
	Verified bool   `json:"verified,omitempty"`
}

// Raise metadataFormat if older files must not be continued.
const metadataFormat = 5

// errNotPrivate: some file systems know neither owners nor modes.
var errNotPrivate = fault.NewError("the file system keeps no file private", fs.ErrPermission)

// openPartial opens or makes the part of a path, and locks it.
func openPartial(path, resource string) (*partial, error) {
	dir, base := filepath.Split(path)
	if base == "" || base == "." || base == ".." {
		return nil, fault.Invalid("the path names no file")
	}
	// Check now: the rename would fail only after the whole download.
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fileError("the path cannot be examined", err)
	case info.IsDir():
		return nil, fileError("the path cannot be replaced", &fs.PathError{Op: "download", Path: base, Err: syscall.EISDIR})
	case !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink:
		return nil, fileError("the path is no regular file", &fs.PathError{Op: "download", Path: base, Err: fs.ErrExist})
	}
	p := &partial{path: path, name: dir + "." + base + ".part", resource: resource}
	file, err := p.open()
	if err != nil {
		return nil, err
	}
	if err := p.take(file); err != nil {
		return nil, err
	}
	return p, nil
}

// take locks an opened part. Meanwhile its download may have ended, and it may be at its path.
func (p *partial) take(file *os.File) error {
	if err := lockFile(file); err != nil {
		file.Close()
		return err
	}
	opened, err := file.Stat()
	named, _ := os.Lstat(p.name)
	switch {
	case err != nil:
		err = fileError("the partial file cannot be examined", err)
	case !os.SameFile(opened, named):
		err = errUnderWay
	case !isOwn(opened):
		remove(p.name)
		err = errNotPrivate
	}
	if err != nil {
		closeLocked(file)
		return err
	}
	p.file = file
	return nil
}

// open opens the part if it is this user's own. Otherwise it makes one, in place of anything
// else with this name, such as a link. A name that comes or goes meanwhile is another download's.
func (p *partial) open() (*os.File, error) {
	info, err := os.Lstat(p.name)
	if err == nil && isOwn(info) {
		file, err := os.OpenFile(p.name, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errUnderWay
		}
		if err != nil {
			return nil, fileError("the partial file cannot be opened", err)
		}
		return file, nil
	}
	if err == nil {
		err = os.Remove(p.name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fileError("the partial file cannot be made", err)
	}
	file, err := os.OpenFile(p.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, errUnderWay
	}
	if err != nil {
		return nil, fileError("the partial file cannot be made", err)
	}
	return file, nil
}

// resumePoint returns the version that an earlier call left a part of, and the offset to resume
// from. It leaves out the last byte, so that the service is asked even about complete content.
func (p *partial) resumePoint() (version, int64) {
	info, err := p.file.Stat()
	m, ok := p.readMetadata()
	if err != nil || !ok || info.Size() <= 1 || m.Version.Validator == "" || m.Version.Length >= 0 && info.Size() > m.Version.Length {
		return version{}, 0
	}
	return m.Version, info.Size() - 1
}

// current returns the metadata of the file at the path, if it is the file that they describe. It
// must still be private: otherwise a private file replaces it.
func (p *partial) current() metadata {
	info, err := os.Lstat(p.path)
	m, ok := p.readMetadata()
	if err != nil || !ok || !isOwn(info) || m.SHA256 == "" || m.Size != info.Size() || m.Modified != info.ModTime().UnixNano() {
		return metadata{}
	}
	return m
}

// begin truncates the part to the bytes to resume from. If there are none, it records the
// version to come.
func (p *partial) begin(v version, from int64) error {
	p.begun, p.useless = true, v.Validator == ""
	err := p.file.Truncate(from)
	if err == nil && from == 0 {
		err = p.writeMetadata(metadata{Version: v})
	}
	if err != nil {
		return fileError("the partial file cannot be prepared", err)
	}
	return nil
}

// read copies to a hash what an earlier call left, which may be huge.
func (p *partial) read(ctx context.Context, to hash.Hash, size int64, piece []byte) error {
	for at := int64(0); at < size; {
		if ctx.Err() != nil {
			return fault.Ended(ctx)
		}
		n, err := p.file.ReadAt(piece[:min(int64(len(piece)), size-at)], at)
		if err != nil {
			return fileError("the file cannot be read", err)
		}
		to.Write(piece[:n])
		at += int64(n)
	}
	return nil
}

// commit puts the part on disk and at its path. If asked for, it leaves the metadata, so that the
// next call can ask whether the file is current.
func (p *partial) commit(m metadata, record bool) error {
	if !renamesOpenFiles {
		if err := p.file.Close(); err != nil {
			return fileError("the file cannot be completed", err)
		}
	}
	info, err := os.Lstat(p.name) // closing may have changed its time
	if err != nil {
		return fileError("the file cannot be completed", err)
	}
	if record {
		m.Modified = info.ModTime().UnixNano()
		_ = p.writeMetadata(m) // without them the content is fetched again
	}
	if err := patiently(func() error { return os.Rename(p.name, p.path) }); err != nil {
		return fileError("the content is complete, but cannot take its path", err)
	}
	p.placed = true
	// From here on the names may be the next download's. Without its metadata it is complete, too,
	// but is not continued after a kill.
	if !record {
		remove(p.metadataName())
	}
	if err := syncDirectory(filepath.Dir(p.path)); err != nil {
		return fileError("the new file is at its path, but may not outlast a crash of the machine", err)
	}
	return nil
}

// sync puts the part on disk. After a failure it may read differently from what was written, and
// a second sync would not report that.
func (p *partial) sync() error {
	err := p.file.Sync()
	if err != nil {
		p.useless = true
		return fileError("the file cannot be completed", err)
	}
	return nil
}

// close unlocks the part, and removes it if no later call can continue it.
func (p *partial) close() {
	defer closeLocked(p.file)
	if p.placed {
		return
	}
	if info, err := os.Lstat(p.name); err != nil || info.Size() > 1 && !p.useless {
		return
	}
	if !renamesOpenFiles {
		p.file.Close()
	}
	if p.begun {
		remove(p.metadataName())
	}
	remove(p.name)
}

func (p *partial) metadataName() string { return p.name + ".json" }

func (p *partial) readMetadata() (m metadata, ok bool) {
	info, err := os.Lstat(p.metadataName())
	if err != nil || !isOwn(info) {
		return m, false
	}
	data, err := os.ReadFile(p.metadataName())
	ok = err == nil && json.Unmarshal(data, &m) == nil
	return m, ok && m.Format == metadataFormat && m.Resource == p.resource
}

// writeMetadata replaces the metadata. If the process is killed meanwhile, there are none: half
// an object is not JSON.
func (p *partial) writeMetadata(m metadata) error {
	m.Format, m.Resource = metadataFormat, p.resource
	data, _ := json.Marshal(m) // it has no type that could fail to encode
	remove(p.metadataName())
	file, err := os.OpenFile(p.metadataName(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

func remove(name string) {
	patiently(func() error { return os.Remove(name) })
}

// fileError is a file system error without its path, because the path belongs to the caller.
func fileError(words string, err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		words += ": " + errno.Error()
	}
	return fault.NewError(words, err)
}
