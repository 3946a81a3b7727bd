//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package updater

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

const (
	renamesOpenFiles = true
	withoutWaiting   = syscall.O_NONBLOCK // for the other end of a pipe
)

// lockFile locks a file against other processes and other downloads of this
// one. The system unlocks it when the process ends, however it ends.
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

// closeLocked unlocks a file too, as the system does with what is closed.
func closeLocked(file *os.File) { file.Close() }

// isOwn tells whether a file is this user's alone, to read and to write, by no other
// name.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && info.Mode().Perm()&0o677 == 0o600 && stat.Nlink == 1 && int(stat.Uid) == os.Geteuid()
}

// isPrivate tells whether a mode gives nobody but the owner anything.
func isPrivate(mode fs.FileMode) bool { return mode.Perm()&0o077 == 0 }

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

// checkReplaceable finds the files that a rename would not replace: one that
// something is mounted on, as containers do with single files, and one of somebody
// else in a directory such as /tmp. What it cannot find out it lets pass.
func (p *partial) checkReplaceable(info fs.FileInfo) error {
	if around, err := p.root.Stat("."); err == nil && isSticky(around, info, os.Geteuid()) {
		return syscall.EPERM
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	if file, dir := p.mount(p.base), p.mount("."); file != "" && dir != "" && file != dir {
		return syscall.EBUSY
	}
	return nil
}

// isSticky tells whether a directory lets a user replace only what is his own.
func isSticky(dir, file fs.FileInfo, user int) bool {
	around, own := dir.Sys().(*syscall.Stat_t), file.Sys().(*syscall.Stat_t)
	return dir.Mode()&fs.ModeSticky != 0 && user != 0 && int(own.Uid) != user && int(around.Uid) != user
}

// mount tells by which mount a name of the directory is reached, on Linux; "" if it cannot
// be found out. The device number does not: overlay file systems give files and
// directories different ones, and one file system can be mounted upon itself.
func (p *partial) mount(name string) string {
	file, err := p.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", file.Fd()))
	for line := range strings.Lines(string(info)) {
		if id, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return id
		}
	}
	return ""
}
