//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package updater

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const renamesOpenFiles = true

// lockFile locks a file against other processes and other downloads of this one. The system
// unlocks it when the process ends in any way.
func lockFile(file *os.File) error {
	for {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
			return nil
		case syscall.EINTR:
		case syscall.EWOULDBLOCK:
			return errUnderWay
		default:
			return fileError("the partial file cannot be locked", err)
		}
	}
}

// patiently calls do once: these systems rename and remove open files.
func patiently(do func() error) error { return do() }

// closeLocked also unlocks the file, because the system does so on close.
func closeLocked(file *os.File) { file.Close() }

// isOwn reports whether a file is this user's, of mode 0600.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && info.Mode().Perm() == 0o600 && int(stat.Uid) == os.Geteuid()
}

// syncDirectory makes a rename survive a crash, if the file system supports that.
func syncDirectory(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
