package updater

import "syscall"

// largeFile lets a 32-bit program have files of 2 GiB and more. os.OpenFile sets it, and
// os.Root does not.
const largeFile = syscall.O_LARGEFILE
