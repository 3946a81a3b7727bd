package updater_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

func (job child) prepare() error {
	if job.Limit {
		limit := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
	}
	if job.Mount {
		return syscall.Mount(job.Path, job.Path, "", syscall.MS_BIND, "")
	}
	return nil
}

// TestFileSizeLimit: a write that the system refuses ends the download with its
// reason, and the part stays.
func TestFileSizeLimit(t *testing.T) {
	fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(3 << 20)})
	path := target(t)
	job := child{URL: fake.URL(), Path: path, Limit: true}
	said, err := job.command(t).Output()
	if err == nil || !strings.Contains(string(said), "the file cannot be written: file too large") || !strings.Contains(string(said), "too big") {
		t.Errorf("%v, %s", err, said)
	}
	holdsOld(t, path)
	if file := job.next(t); file.ResumedBytes != 1<<20-1 {
		t.Errorf("%d bytes were continued", file.ResumedBytes)
	}
	holds(t, path, sample(3<<20))
}

// TestEndsWhileHashing: a call that ends returns without hashing what an earlier one
// has left, however much that is, and a hash that was not completed is an error.
func TestEndsWhileHashing(t *testing.T) {
	const size = 1 << 40
	for _, is := range []error{updater.ErrBadResponse, context.Canceled} {
		path := target(t)
		fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(size)})
		interrupt(t, fake, path, 100, updater.FileOptions{})
		if err := os.Truncate(partialOf(path), size-1); err != nil {
			t.Skip("no sparse files here:", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		end := func(updater.FileProgress) { cancel() }
		if is != context.Canceled {
			fake.Script(updatertest.Fault{Truncate: 1})
			end = nil
		}
		_, err := fake.Client(updater.WithMaxRetries(0)).DownloadFile(ctx, "7", path, updater.FileOptions{Progress: end})
		if !errors.Is(err, is) {
			t.Error(err)
		}
	}
}

// TestUmask: the mode is what is promised, whatever the process takes away.
func TestUmask(t *testing.T) {
	fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)})
	for _, umask := range []int{0o277, 0o777} {
		path := target(t)
		before := syscall.Umask(umask)
		_, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{Progress: func(updater.FileProgress) {
			for _, name := range []string{partialOf(path), partialOf(path) + ".json"} {
				if info, err := os.Lstat(name); err != nil || info.Mode() != 0o600 {
					t.Errorf("umask %o: %v, %v", umask, info, err)
				}
			}
		}})
		syscall.Umask(before)
		if err != nil {
			t.Error(err)
		}
		holds(t, path, sample(1000))
	}
}

// amongMounts runs the child in a mount namespace of its own, and returns what it
// says.
func (job child) amongMounts(t *testing.T) string {
	t.Helper()
	cmd := job.command(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	said, err := cmd.Output()
	if errors.Is(err, fs.ErrPermission) || strings.Contains(string(said), "cannot prepare") {
		t.Skipf("no mount namespace here: %v %s", err, said)
	}
	return string(said)
}

// TestMountedPath: a path that something is mounted on, which cannot be replaced, is
// told before anything is asked for.
func TestMountedPath(t *testing.T) {
	fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)})
	path := target(t)
	said := child{URL: fake.URL(), Path: path, Mount: true}.amongMounts(t)
	if !strings.Contains(said, "the path cannot be replaced: device or resource busy") || len(fake.Requests()) > 0 {
		t.Errorf("%d requests, says %q", len(fake.Requests()), said)
	}
	if file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{}); err != nil {
		t.Errorf("%v, %v", file, err)
	}
}

// asAnother does something with the rights of an ordinary user, also if the test
// is run by one who may do anything.
func asAnother(t *testing.T, dir string, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	for d := dir; d != os.TempDir() && len(d) > 1; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, info.Mode()|0o055); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked, which ends the thread with its rights
		syscall.Setfsuid(65534)
		syscall.Setfsgid(65534)
		do()
	}()
	<-done
}

func TestNoPermission(t *testing.T) {
	fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)})
	for name, mode := range map[string]fs.FileMode{"read-only directory": 0o555, "closed directory": 0o700} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			if err := os.Mkdir(dir, mode); err != nil {
				t.Fatal(err)
			}
			if os.Geteuid() != 0 && mode == 0o700 {
				os.Chmod(dir, 0)
				defer os.Chmod(dir, 0o700)
			}
			asAnother(t, filepath.Dir(dir), func() {
				_, err := fake.Client().DownloadFile(t.Context(), "7", filepath.Join(dir, "result"), updater.FileOptions{})
				if !errors.Is(err, fs.ErrPermission) || !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), "permission denied") {
					t.Error(err)
				}
			})
		})
	}
	if n := len(fake.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

// TestPlanted: what somebody else put at the names that a download uses leads its
// bytes nowhere else.
func TestPlanted(t *testing.T) {
	const victim = "the victim's content"
	content := sample(1000)
	symlink := func(t *testing.T, to, name string) {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	for name, plant := range map[string]func(t *testing.T, victim, path string){
		"link in place of the part":            func(t *testing.T, victim, path string) { symlink(t, victim, partialOf(path)) },
		"link to a neighbour":                  func(t *testing.T, victim, path string) { symlink(t, filepath.Base(victim), partialOf(path)) },
		"link to nothing":                      func(t *testing.T, victim, path string) { symlink(t, "nothing", partialOf(path)) },
		"link in place of the metadata":        func(t *testing.T, victim, path string) { symlink(t, victim, partialOf(path)+".json") },
		"link in place of the new metadata":    func(t *testing.T, victim, path string) { symlink(t, victim, partialOf(path)+".json.new") },
		"link in place of the path":            func(t *testing.T, victim, path string) { os.Remove(path); symlink(t, victim, path) },
		"second name in place of the part":     func(t *testing.T, victim, path string) { os.Link(victim, partialOf(path)) },
		"pipe in place of the part":            func(t *testing.T, victim, path string) { syscall.Mkfifo(partialOf(path), 0o600) },
		"pipe in place of the record":          func(t *testing.T, victim, path string) { syscall.Mkfifo(recordOf(path), 0o600) },
		"pipe in place of the metadata":        func(t *testing.T, victim, path string) { syscall.Mkfifo(partialOf(path)+".json", 0o600) },
		"empty directory in place of the part": func(t *testing.T, victim, path string) { os.Mkdir(partialOf(path), 0o700) },
		"part that nobody can read":            func(t *testing.T, victim, path string) { os.WriteFile(partialOf(path), []byte(victim), 0) },
		"part that others can read":            func(t *testing.T, victim, path string) { os.WriteFile(partialOf(path), []byte(victim), 0o644) },
		"part of somebody else": func(t *testing.T, victim, path string) {
			if os.Geteuid() == 0 {
				os.WriteFile(partialOf(path), []byte(victim), 0o600)
				os.Chown(partialOf(path), 65534, 65534)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := target(t)
			other := filepath.Join(filepath.Dir(path), "victim")
			if err := os.WriteFile(other, []byte(victim), 0o600); err != nil {
				t.Fatal(err)
			}
			plant(t, other, path)
			held, _ := os.OpenFile(partialOf(path), os.O_RDWR|syscall.O_NONBLOCK, 0) // by whoever planted it
			fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)})
			if _, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{IfChanged: true}); err != nil {
				t.Fatal(err)
			}
			holds(t, path, content)
			if got, _ := os.ReadFile(other); string(got) != victim {
				t.Errorf("the victim holds %q", got)
			}
			lists(t, path, ".result.csv.json", "result.csv", "victim")
			if held != nil {
				defer held.Close()
				now, _ := os.Stat(path)
				if before, err := held.Stat(); err == nil && os.SameFile(before, now) {
					t.Error("whoever planted the part has the content open")
				}
			}
		})
	}
	for _, of := range []string{"", ".json", ".json.new"} {
		t.Run("directory in place of the part"+of, func(t *testing.T) {
			path := target(t)
			if err := os.MkdirAll(filepath.Join(partialOf(path)+of, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
			fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)})
			if _, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{}); err == nil || of == "" && !errors.Is(err, syscall.ENOTEMPTY) {
				t.Error(err)
			}
			lists(t, path, ".result.csv.part"+of, "result.csv")
		})
	}
}

// TestMovedDirectory: a path that leads elsewhere at the end is no success, and the
// content stays nowhere.
func TestMovedDirectory(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	lead := func(to string) {
		os.Remove(link)
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, to), 0o700), os.Symlink(to, link)); err != nil {
			t.Error(err)
		}
	}
	lead("a")
	fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)})
	_, err := fake.Client().DownloadFile(t.Context(), "7", filepath.Join(link, "result"), updater.FileOptions{Progress: func(updater.FileProgress) { lead("b") }})
	if _, own := err.(*updater.Error); !own || !strings.Contains(err.Error(), "the path leads to another directory") {
		t.Error(err)
	}
	for _, name := range []string{"a", "b"} {
		lists(t, filepath.Join(dir, name, "result"))
	}
}
