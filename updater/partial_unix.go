//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package updater

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const (
	renamesOpenFiles = true
	withoutWaiting   = syscall.O_NONBLOCK // do not wait for the other end of a pipe
)

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

// isOwn reports whether only this user can read and write the file, and it has no other name.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && info.Mode().Perm()&0o677 == 0o600 && stat.Nlink == 1 && int(stat.Uid) == os.Geteuid()
}

// isPrivate reports whether a mode gives access to the owner only.
func isPrivate(mode fs.FileMode) bool { return mode.Perm()&0o077 == 0 }

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
