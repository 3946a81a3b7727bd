package updater

import (
	"context"
	"errors"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/carddata/carddata-go/internal/fault"
)

// ErrBusy: another download to the same path is under way, in this process or another. Wait
// for it, or choose another path.
var ErrBusy = fault.NewCondition("busy", "path is busy", true)

var errUnderWay = fault.NewError("another download to the same path is under way", ErrBusy)

// A partial is the private file for content that is still arriving, beside its final path,
// with its metadata. Opening it takes an exclusive lock.
//
// The process may be killed at any moment, so the metadata always describes the bytes in the
// file. It is written while the file is empty, and removed before the rename.
type partial struct {
	path   string // the final path of the content
	record string // the path of the complete file's metadata
	name   string // the path of the partial file
	file   *os.File
	info   fs.FileInfo // of file, also after it is closed
	// tainted: do not resume from this file.
	tainted bool
}

// errNotPrivate: some file systems know neither owners nor modes.
var errNotPrivate = fault.NewError("the file system keeps no file private", fs.ErrPermission)

// openPartial opens or makes the partial file of a path, and locks it.
func openPartial(path string) (*partial, error) {
	dir, base := filepath.Split(path)
	if base == "" || base == "." || base == ".." {
		return nil, fault.Invalid("the path names no file")
	}
	p := &partial{path: path, record: dir + "." + base + ".json", name: dir + "." + base + ".part"}
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
	if _, err := os.Lstat(p.metadataName()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fileError("the names of the partial file cannot be used", err) // too long, mostly
	}
	// Another download may move the file to its path at any time.
	for range 100 {
		file, err := p.openOwn()
		if err == errNotPrivate {
			return nil, err
		}
		if err != nil {
			return nil, fileError("the partial file cannot be made", err)
		}
		if file == nil {
			continue
		}
		if err := lockFile(file); err != nil {
			file.Close()
			return nil, err
		}
		if info, err := file.Stat(); err == nil && isNamed(file) {
			p.file, p.info = file, info
			return p, nil
		}
		closeLocked(file)
	}
	return nil, errUnderWay
}

// openOwn opens the partial file if it is this user's own, or makes it. It removes anything
// else with this name and returns nil, for example a link, or a file of a process that was
// killed before it set the mode.
func (p *partial) openOwn() (*os.File, error) {
	info, err := os.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.make()
	case err == nil && !isOwn(info):
		err := os.Remove(p.name)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	file, err := os.OpenFile(p.name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// make makes a file of this user's own, or returns nil if another process has just made one.
func (p *partial) make() (*os.File, error) {
	file, err := createPrivate(p.name)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	made, err := file.Stat()
	if err == nil && isOwn(made) {
		return file, nil
	}
	defer file.Close()
	// Another download may have taken the file over and ended.
	if named, _ := os.Lstat(p.name); !os.SameFile(made, named) {
		return nil, err
	}
	os.Remove(p.name)
	return nil, errNotPrivate
}

// createPrivate makes a file of mode 0600, and follows no link.
func createPrivate(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Chmod(0o600); err != nil { // the umask may have removed bits
		file.Close()
		return nil, err
	}
	return file, nil
}

// isNamed reports whether the file's name still leads to it.
func isNamed(file *os.File) bool {
	opened, _ := file.Stat()
	named, _ := os.Lstat(file.Name())
	return os.SameFile(opened, named) && isOwn(opened)
}

// begin truncates the file to the bytes to resume from. If there are none, it records the
// version to come.
func (p *partial) begin(resource string, v version, from int64) error {
	info, err := p.file.Stat()
	if err == nil && info.Size() > from {
		err = p.file.Truncate(from)
		if err == nil && from == 0 {
			// The old bytes must be gone for good before the metadata describes new ones.
			err = p.sync()
		}
	}
	if err == nil && from == 0 {
		err = p.writeMetadata(p.metadataName(), metadata{Resource: resource, Version: v})
	}
	if err != nil {
		return fileError("the partial file cannot be prepared", err)
	}
	p.tainted = v.Validator == "" // a later call could not resume it
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

// sync makes the content survive a crash of the machine. After a failed sync, the file may
// read differently from what was written, and a second sync would not report it.
func (p *partial) sync() error {
	err := p.file.Sync()
	if err != nil {
		p.tainted = true
	}
	return err
}

// commit renames the file to its path. If asked for, it leaves a record beside it, so that
// the next call can ask whether the file is current.
func (p *partial) commit(m metadata, record bool) error {
	info, err := p.file.Stat()
	if err == nil && (info.Size() != m.Size || !isNamed(p.file)) {
		err = fs.ErrInvalid // another program has changed it
	}
	if err != nil {
		return fileError("the file cannot be completed", err)
	}
	if !renamesOpenFiles {
		if err := p.file.Close(); err != nil {
			return fileError("the file cannot be completed", err)
		}
		info, _ = os.Lstat(p.name) // closing may have changed it
	}
	// These sidecar names are ours until the rename. The record stores the file's time, so it
	// is ignored if the rename never happened. Without a record the content is fetched again,
	// so a failed record is no failure.
	os.Remove(p.record)
	if record && info != nil {
		m.Modified = info.ModTime().UnixNano()
		_ = p.writeMetadata(p.record, m)
	}
	// After the rename, the metadata could belong to the next download, which may begin at
	// once. So remove it first, and restore it if the rename fails.
	of, known := p.readMetadata(p.metadataName(), m.Resource)
	remove(p.metadataName())
	if err := patiently(func() error { return os.Rename(p.name, p.path) }); err != nil {
		if !known || p.writeMetadata(p.metadataName(), of) != nil {
			p.tainted = true
		}
		return fileError("the content is complete, but cannot take its path", err)
	}
	if err := syncDirectory(filepath.Dir(p.path)); err != nil {
		err = fileError("the new file is at its path, but may not outlast a crash of the machine", err)
		return fault.NewError(err.Error(), ErrNotSynced, err)
	}
	return nil
}

// discardOrKeep ends a failed download. It keeps the partial file only if a later one can
// resume it.
func (p *partial) discardOrKeep() {
	left, err := os.Lstat(p.name)
	if err != nil || !os.SameFile(left, p.info) || !isOwn(left) || left.Size() > 1 && !p.tainted {
		return
	}
	if !renamesOpenFiles {
		p.file.Close()
	}
	remove(p.metadataName())
	remove(p.name)
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
