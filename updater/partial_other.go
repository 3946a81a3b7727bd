//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package updater

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

const renamesOpenFiles = false

// locked holds the partial files in use by this process. Two paths can lead to one file.
// Without flock, other processes are not noticed.
var locked = struct {
	sync.Mutex
	files map[*os.File]fs.FileInfo
}{files: map[*os.File]fs.FileInfo{}}

func lockFile(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return fileError("the partial file cannot be locked", err)
	}
	locked.Lock()
	defer locked.Unlock()
	for _, other := range locked.files {
		if os.SameFile(info, other) {
			return errUnderWay
		}
	}
	locked.files[file] = info
	return nil
}

// patiently retries for about a second while the system refuses to rename or remove a file.
// Windows does so while a virus scanner or a reader has it open.
func patiently(do func() error) error {
	const sharingViolation = syscall.Errno(32) // of Windows
	for wait := time.Millisecond; ; wait *= 2 {
		err := do()
		if wait > 512*time.Millisecond || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, sharingViolation) {
			return err
		}
		time.Sleep(wait)
	}
}

func closeLocked(file *os.File) {
	locked.Lock()
	defer locked.Unlock()
	delete(locked.files, file)
	file.Close()
}

// isOwn cannot tell more: modes are made up on these systems.
func isOwn(info fs.FileInfo) bool { return info.Mode().IsRegular() }

func syncDirectory(string) error { return nil }
