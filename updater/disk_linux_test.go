package updater_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// TestBusyPath: a path that another download, here of another process, has locked is busy.
func TestBusyPath(t *testing.T) {
	path := target(t)
	fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)})
	interrupt(t, fake, path, 500)
	part, err := os.Open(partialOf(path))
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	if err := syscall.Flock(int(part.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{}); !errors.Is(err, updater.ErrBusy) || !strings.Contains(err.Error(), "under way") {
		t.Error(err)
	}
	lists(t, path, ".result.csv.part", ".result.csv.part.json", "result.csv")
}

// TestPlanted: nothing at the names that a download uses makes it write elsewhere, or gives
// the content to somebody who has a file open.
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
		"link in place of the path":            func(t *testing.T, victim, path string) { os.Remove(path); symlink(t, victim, path) },
		"pipe in place of the part":            func(t *testing.T, victim, path string) { syscall.Mkfifo(partialOf(path), 0o600) },
		"pipe in place of the metadata":        func(t *testing.T, victim, path string) { syscall.Mkfifo(partialOf(path)+".json", 0o600) },
		"empty directory in place of the part": func(t *testing.T, victim, path string) { os.Mkdir(partialOf(path), 0o700) },
		"part that nobody can read":            func(t *testing.T, victim, path string) { os.WriteFile(partialOf(path), []byte(victim), 0) },
		"part that others can read": func(t *testing.T, victim, path string) {
			os.WriteFile(partialOf(path), []byte(victim), 0o600)
			os.Chmod(partialOf(path), 0o644) // under any umask
		},
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
			held, _ := os.OpenFile(partialOf(path), os.O_RDWR|syscall.O_NONBLOCK, 0) // as somebody else may
			fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)})
			if _, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{IfChanged: true}); err != nil {
				t.Fatal(err)
			}
			holds(t, path, content)
			if got, _ := os.ReadFile(other); string(got) != victim {
				t.Errorf("the victim holds %q", got)
			}
			lists(t, path, ".result.csv.part.json", "result.csv", "victim")
			if held != nil {
				defer held.Close()
				now, _ := os.Stat(path)
				if before, err := held.Stat(); err == nil && os.SameFile(before, now) {
					t.Error("the planted part, which is open, became the content")
				}
			}
		})
	}
	t.Run("pipe in place of the path", func(t *testing.T) {
		path := target(t)
		if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err := updatertest.NewServer(t).Client().DownloadFile(t.Context(), "42", path, updater.FileOptions{})
		if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "no regular file") {
			t.Error(err)
		}
	})
	for _, of := range []string{"", ".json"} {
		t.Run("directory in place of the part"+of, func(t *testing.T) {
			path := target(t)
			if err := os.MkdirAll(filepath.Join(partialOf(path)+of, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
			fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)})
			if _, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{}); err == nil || of == "" && !errors.Is(err, syscall.ENOTEMPTY) {
				t.Error(err)
			}
			lists(t, path, ".result.csv.part"+of, "result.csv")
		})
	}
}
