package testkit

import (
	"fmt"
	"os"
	"strings"
)

// PeakMemory is the most memory in bytes that this process ever took; 0 where the system
// does not tell. The rusage of a child would count its parent's too, from before it executed.
func PeakMemory() int {
	status, _ := os.ReadFile("/proc/self/status")
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int
	fmt.Sscanf(line, "%d kB", &kilobytes)
	return kilobytes << 10
}
