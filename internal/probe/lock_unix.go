//go:build unix

package probe

import (
	"os"
	"syscall"
)

// lock keeps two probes from sending the same plan at once.
func lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
