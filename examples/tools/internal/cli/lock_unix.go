//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cli

import (
	"io/fs"
	"os"
	"syscall"
)

// Lock locks a file against other processes. The system unlocks it when the process ends.
func Lock(file *os.File) error {
	for {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
			return nil
		case syscall.EINTR:
		case syscall.EWOULDBLOCK:
			return Usage("another process uses %s", file.Name())
		default:
			return &fs.PathError{Op: "lock", Path: file.Name(), Err: err}
		}
	}
}
