//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package updater

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/carddata/carddata-go/internal/transport"
)

const renamesOpenFiles = false

// locked are the partial files in use by this process. Without flock, another
// process is not noticed.
var locked sync.Map

func lockFile(file *os.File) error {
	if _, taken := locked.LoadOrStore(lockName(file), true); taken {
		return transport.Reason("another download to the same path is under way", ErrBusy)
	}
	return nil
}

func unlockFile(file *os.File) { locked.Delete(lockName(file)) }

func lockName(file *os.File) string {
	if path, err := filepath.Abs(file.Name()); err == nil {
		return path
	}
	return file.Name()
}

func isOwn(info fs.FileInfo) bool { return info.Mode().IsRegular() }

func syncDirectory(*os.Root) error { return nil }
