package updater

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/carddata/carddata-go/internal/transport"
)

// ErrBusy: another download to the same path is under way, in this process or
// another. Wait for it, or choose another path.
var ErrBusy = transport.NewCondition("busy", "path is busy", true)

var errUnderWay = transport.NewError("another download to the same path is under way", ErrBusy)

// A partial is the private file in which the content gathers, beside the path
// that it is to have, and its metadata. Opening it takes an exclusive lock.
//
// At any moment at which the process may be killed, the metadata is of the bytes in
// the file: it is written while the file is empty, and removed before the file gets
// its path.
type partial struct {
	root *os.Root // the directory, so that no link leads out of it
	dir  string   // as the caller calls it
	base string   // the name that the content is to have
	name string
	file *os.File
	// tainted: what is in the file is not to be built upon.
	tainted bool
}

// errNotPrivate: some file systems know neither owners nor modes.
var errNotPrivate = errors.New("not private")

// openPartial opens or makes the partial file of a path, and locks it.
func openPartial(path string) (*partial, error) {
	dir, base := filepath.Split(path)
	if base == "" || base == "." || base == ".." {
		return nil, transport.Invalid("the path names no file")
	}
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fileError("the directory cannot be opened", err)
	}
	p := &partial{root: root, dir: dir, base: base, name: "." + base + ".part"}
	if err := p.open(); err != nil {
		root.Close()
		return nil, err
	}
	return p, nil
}

func (p *partial) open() error {
	switch info, err := p.root.Lstat(p.base); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fileError("the path cannot be examined", err)
	case info.IsDir():
		return fileError("the path cannot be replaced", &fs.PathError{Op: "download", Path: p.base, Err: syscall.EISDIR})
	case !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink:
		return fileError("the path is no regular file", &fs.PathError{Op: "download", Path: p.base, Err: fs.ErrExist})
	default:
		// Found out by the rename, it would be found out after the whole download.
		if err := p.checkReplaceable(info); err != nil {
			return fileError("the path cannot be replaced", &fs.PathError{Op: "download", Path: p.base, Err: err})
		}
	}
	if _, err := p.root.Lstat(p.newMetadataName()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileError("the names of the partial file cannot be used", err) // too long, mostly
	}
	// The name changes hands when a download ends just now.
	for range 100 {
		file, err := p.openOwn()
		if errors.Is(err, errNotPrivate) {
			return transport.NewError("the file system keeps no file private", fs.ErrPermission)
		}
		if err != nil {
			return fileError("the partial file cannot be made", err)
		}
		if file == nil {
			continue
		}
		if err := lockFile(file); err != nil {
			file.Close()
			return err
		}
		if p.isNamed(file) {
			p.file = file
			return nil
		}
		closeLocked(file)
	}
	return errUnderWay
}

// openOwn opens the partial file if it is this user's own, or makes it. Anything
// else of the name, such as a link that leads elsewhere, or a file of a process that
// was killed before it had its mode, is removed and nil is returned.
func (p *partial) openOwn() (*os.File, error) {
	info, err := p.root.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.make()
	case err == nil && !isOwn(info):
		err := p.root.Remove(p.name)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	file, err := p.root.OpenFile(p.name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// make makes a file of this user's own, or returns nil if another has just done
// so.
func (p *partial) make() (*os.File, error) {
	file, err := p.root.OpenFile(p.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = file.Chmod(0o600) // what the umask took away
	var made fs.FileInfo
	if err == nil {
		made, err = file.Stat()
	}
	if err == nil && isOwn(made) {
		return file, nil
	}
	defer file.Close()
	// Unless another download has taken it over meanwhile, and ended.
	if named, _ := p.root.Lstat(p.name); !os.SameFile(made, named) {
		return nil, err
	}
	p.root.Remove(p.name)
	return nil, errNotPrivate
}

// isNamed tells whether the name still leads to the file itself.
func (p *partial) isNamed(file *os.File) bool {
	opened, _ := file.Stat()
	named, _ := p.root.Lstat(filepath.Base(file.Name()))
	return os.SameFile(opened, named) && isOwn(opened)
}

// begin cuts the file to the bytes that are built upon, and notes what they are.
func (p *partial) begin(resource string, v version, from int64) error {
	info, err := p.file.Stat()
	if err == nil && info.Size() > from {
		err = p.file.Truncate(from)
		if err == nil && from == 0 {
			// The old bytes must be gone for good before the metadata is of new ones.
			err = p.sync()
		}
	}
	if err == nil {
		err = p.writeMetadata(p.metadataName(), metadata{Resource: resource, Version: v})
	}
	if err != nil {
		return fileError("the partial file cannot be prepared", err)
	}
	p.tainted = v.Validator == "" // nothing could continue it
	return nil
}

// sync makes the content outlast a crash of the machine. Once it has failed, what
// is read from the file need not be what was written, and a second one tells nothing.
func (p *partial) sync() error {
	err := p.file.Sync()
	if err != nil {
		p.tainted = true
	}
	return err
}

// syncEvery is how much is written before the disk is told to begin: much more
// than it takes in a moment, and little beside what a system holds back by itself.
const syncEvery = 32 << 20

// followSync has the disk work while content is still coming, so that little is left
// to be done in the end.
func (p *partial) followSync(ctx context.Context, from int64) *follower {
	synced := from
	return follow(func(to int64) error {
		if to-synced < syncEvery || ctx.Err() != nil {
			return nil
		}
		synced = to
		return p.sync()
	})
}

// commit gives the content its path. If asked for, a record stays beside it, with what
// the next call needs to ask whether the file is current.
func (p *partial) commit(m metadata, record bool) error {
	info, err := p.file.Stat()
	if err == nil && (info.Size() != m.Size || !p.isNamed(p.file)) {
		err = fs.ErrInvalid // somebody else has been at it
	}
	if err != nil {
		return fileError("the file cannot be completed", err)
	}
	if !p.isInPlace() {
		p.tainted = true // no later call would look for it here
		return fileError("the path leads to another directory by now", fs.ErrInvalid)
	}
	if !renamesOpenFiles {
		if err := p.file.Close(); err != nil {
			return fileError("the file cannot be completed", err)
		}
		info, _ = p.root.Lstat(p.name) // which closing may have changed
	}
	// The names beside the path belong to this download until the file has it; the file's
	// time tells if it never got there. Without a record the content is fetched again, so
	// that failing to write one is no failure.
	p.root.Remove(p.recordName())
	if record && info != nil {
		m.Modified = info.ModTime().UnixNano()
		_ = p.writeMetadata(p.recordName(), m)
	}
	// Once the file is renamed, its metadata could be that of the next download, which
	// may begin at once: it goes before, and comes back if there was no renaming.
	of, known := p.readMetadata(p.metadataName(), m.Resource)
	p.root.Remove(p.metadataName())
	if err := p.root.Rename(p.name, p.base); err != nil {
		if !known || p.writeMetadata(p.metadataName(), of) != nil {
			p.tainted = true
		}
		return fileError("the content is complete, but cannot take its path", err)
	}
	if err := syncDirectory(p.root); err != nil {
		return fileError("the file is complete, but may not outlast a crash of the machine", err)
	}
	return nil
}

// isInPlace tells whether the caller's path still leads to the directory.
func (p *partial) isInPlace() bool {
	opened, _ := p.root.Stat(".")
	named, _ := os.Stat(p.dir)
	return os.SameFile(opened, named)
}

// discardOrKeep ends a download that failed. Only what a later one can build upon stays.
func (p *partial) discardOrKeep() {
	info, err := p.file.Stat()
	if err == nil && info.Size() > 1 && !p.tainted || !p.isNamed(p.file) {
		return
	}
	if !renamesOpenFiles {
		p.file.Close()
	}
	p.root.Remove(p.metadataName())
	p.root.Remove(p.name)
}

func (p *partial) close() {
	closeLocked(p.file)
	p.root.Close()
}

// fileError is an error of the file system without its path, which is the
// caller's.
func fileError(words string, err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		words += ": " + errno.Error()
	}
	return transport.NewError(words, err)
}
