//go:build amd64 || arm64

package updater_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// failSystemCall makes a system call of this goroutine alone fail from now on. With 0 it
// succeeds and does nothing.
func failSystemCall(number uint32, with syscall.Errno) error {
	runtime.LockOSThread() // and never unlocked, which ends the thread with its filter
	filter := []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS},
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jf: 1, K: number},
		{Code: syscall.BPF_RET, K: 0x50000 | uint32(with)}, // SECCOMP_RET_ERRNO
		{Code: syscall.BPF_RET, K: 0x7fff0000},             // SECCOMP_RET_ALLOW
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const noNewPrivileges, setSeccomp, filtered = 38, 22, 2
	_, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivileges, 1, 0, 0, 0, 0)
	if err == 0 {
		_, _, err = syscall.RawSyscall(syscall.SYS_PRCTL, setSeccomp, filtered, uintptr(unsafe.Pointer(&program)))
	}
	if err != 0 {
		return err
	}
	return nil
}

// TestFailingSystem: after each failure of the system, the error says what failed, the path
// has the old content or the whole new one, and no part stays that no call could continue.
func TestFailingSystem(t *testing.T) {
	const kept = ".result.csv.part .result.csv.part.json"
	block := func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }
	for _, test := range []struct {
		name   string
		before int    // bytes that an earlier call left
		moment string // when it happens: at the beginning, or in Check
		do     func(path string) error
		fails  uint32 // a system call
		with   syscall.Errno
		says   string // "": success
		placed bool
		left   string
	}{
		{"no lock", 0, "call", nil, syscall.SYS_FLOCK, syscall.ENOLCK, "the partial file cannot be locked: no locks available", false, ".result.csv.part"},
		{"another mode", 0, "call", func(string) error { syscall.Umask(0o277); return nil }, 0, 0, "the file system keeps no file private", false, ""},
		{"no sync of what was continued", 500, "call", nil, syscall.SYS_FSYNC, syscall.EIO, "the file cannot be completed: input/output error", false, ""},
		{"no sync", 0, "call", nil, syscall.SYS_FSYNC, syscall.EIO, "the file cannot be completed: input/output error", false, ""},
		{"no space", 500, "call", nil, syscall.SYS_PWRITE64, syscall.ENOSPC, "the file cannot be written: no space left on device", false, kept},

		{"no renaming", 0, "check", nil, syscall.SYS_RENAMEAT, syscall.EXDEV, "the content is complete, but cannot take its path: invalid cross-device link", false, kept},
		{"blocked", 0, "check", block, 0, 0, "cannot take its path", false, kept},

		{"no sync of the directory", 0, "check", nil, syscall.SYS_FSYNC, syscall.EIO, "the new file is at its path, but may not outlast a crash of the machine: input/output error", true, ""},
		{"no look into the directory", 0, "check", nil, syscall.SYS_OPENAT, syscall.EMFILE, "the new file is at its path, but may not outlast a crash of the machine: too many open files", true, ""},
		{"a directory that needs no sync", 0, "check", nil, syscall.SYS_FSYNC, syscall.EINVAL, "", true, ""},
		{"a directory that knows no sync", 0, "check", nil, syscall.SYS_FSYNC, syscall.ENOTSUP, "", true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := target(t)
			defer syscall.Umask(syscall.Umask(0o022))
			fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)})
			if test.before > 0 {
				interrupt(t, fake, path, test.before)
			}
			var impossible, err error
			happen := func(moment string) {
				if moment != test.moment {
					return
				}
				if test.do != nil && test.do(path) != nil {
					t.Error("the directory is not as it was expected")
				}
				if test.fails != 0 {
					impossible = failSystemCall(test.fails, test.with)
				}
			}
			client := fake.Client()
			done := make(chan struct{})
			go func() {
				defer close(done)
				happen("call")
				_, err = client.DownloadFile(t.Context(), "7", path, updater.FileOptions{Check: func(*io.SectionReader, http.Header) error { happen("check"); return nil }})
			}()
			<-done
			if impossible != nil {
				t.Skip("no filter of system calls here:", impossible)
			}
			if (err == nil) != (test.says == "") || err != nil && (!strings.Contains(err.Error(), test.says) || test.with != 0 && !errors.Is(err, updater.ErrBusy) && !errors.Is(err, test.with)) {
				t.Error(err)
			}
			if _, ok := errors.AsType[*updater.Error](err); err != nil && (!ok || strings.Contains(err.Error(), "is at its path") != test.placed) {
				t.Errorf("tells of the new file: %v", err)
			}
			want := "old"
			if test.placed {
				want = string(sample(1000))
			}
			if got, err := os.ReadFile(path); !errors.Is(err, syscall.EISDIR) && string(got) != want {
				t.Errorf("the path holds %d bytes, %v", len(got), err)
			}
			if names := slices.DeleteFunc(beside(t, path), func(name string) bool { return name == "result.csv" }); strings.Join(names, " ") != test.left {
				t.Errorf("left: %q", names)
			}
		})
	}
}
