package updater

import (
	"os"
	"strings"
	"sync"
)

// bootID tells one run of the machine from the next, where the system says so.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})
