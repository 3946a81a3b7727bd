package redisserver

import (
	"os/exec"
	"syscall"
)

// endWithParent has the process end with this one, even if this one is killed.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
