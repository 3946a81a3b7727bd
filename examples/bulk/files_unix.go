//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// lockFile locks a file against other runs. The system unlocks it when the
// process ends, however it ends.
func lockFile(file *os.File) error {
	for {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
			return nil
		case syscall.EINTR:
		case syscall.EWOULDBLOCK:
			return target.Usage("bulk: another process is at work on this output: %s is locked", target.Path(file.Name()))
		default:
			return &fs.PathError{Op: "lock", Path: file.Name(), Err: err}
		}
	}
}

func isPrivate(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0 && int(stat.Uid) == os.Geteuid()
}
