//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package updater

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/carddata/carddata-go/internal/transport"
)

const renamesOpenFiles = true

// lockFile locks a file against other processes and other downloads of this
// one. The system unlocks it when the process ends, however it ends.
func lockFile(file *os.File) error {
	for {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
			return nil
		case syscall.EINTR:
		case syscall.EWOULDBLOCK:
			return transport.Reason("another download to the same path is under way", ErrBusy)
		default:
			return fileError("the partial file cannot be locked", err)
		}
	}
}

// unlockFile is done by closing it.
func unlockFile(*os.File) {}

// isOwn tells whether a file is this user's alone, to read and to write, by no other
// name.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && info.Mode().Perm()&0o677 == 0o600 && stat.Nlink == 1 && int(stat.Uid) == os.Geteuid()
}

// syncDirectory makes a rename outlast a crash, where the file system can.
func syncDirectory(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
