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

// checkReplaceable finds mount points, which a rename cannot replace. Containers mount
// single files. If it cannot find out, it returns nil.
func (p *partial) checkReplaceable(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return nil
	}
	if file, dir := p.mount(p.base), p.mount("."); file != "" && dir != "" && file != dir {
		return syscall.EBUSY
	}
	return nil
}

// mount identifies the mount of a name in the directory, on Linux; "" if unknown. The device
// number is not enough: overlay file systems give files and directories different numbers,
// and a file system can be mounted on itself.
func (p *partial) mount(name string) string {
	file, err := p.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|largeFile, 0)
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
