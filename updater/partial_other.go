//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package updater

import (
	"io/fs"
	"os"
	"sync"
)

const (
	renamesOpenFiles = false
	withoutWaiting   = 0 // opening does not wait
)

// locked are the partial files in use by this process, whatever paths lead to
// them. Without flock, another process is not noticed.
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

func closeLocked(file *os.File) {
	locked.Lock()
	defer locked.Unlock()
	delete(locked.files, file)
	file.Close()
}

func isOwn(info fs.FileInfo) bool { return info.Mode().IsRegular() }

// isPrivate cannot tell: modes are made up here.
func isPrivate(fs.FileMode) bool { return true }

func syncDirectory(*os.Root) error { return nil }

// checkReplaceable cannot tell here what will not be replaced, such as an open file.
func (p *partial) checkReplaceable(fs.FileInfo) error { return nil }
