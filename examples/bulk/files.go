package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// sameFile tells whether two paths lead to one file, or would if there was one.
func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB) || resolved(a) == resolved(b)
}

// resolved returns the path with a directory that has no links in it.
func resolved(path string) string {
	dir, name := filepath.Split(path) // as the system does: link/.. is not here
	if real, err := filepath.EvalSymlinks(cmp.Or(dir, ".")); err == nil {
		path = filepath.Join(real, name)
	}
	if absolute, err := filepath.Abs(path); err == nil {
		return absolute
	}
	return path
}

// openPrivate makes a file that only its owner can read or, where existing is
// true, opens one that is so already.
func openPrivate(path string, existing bool) (*os.File, error) {
	var file *os.File
	err := fs.ErrNotExist
	if existing {
		file, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if errors.Is(err, fs.ErrNotExist) {
		file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, target.Usage("bulk: %s exists: name another file", target.Path(path))
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !isPrivate(info) {
		err = target.Usage("bulk: %s is not yours alone (chmod 600): name another file", target.Path(path))
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// replaceFile writes a file that only its owner can read in place of another.
func replaceFile(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".bulk-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}
