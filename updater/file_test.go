package updater_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// target is a path with old content, alone in a directory.
func target(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "result.csv")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if names := openFiles(filepath.Dir(path)); len(names) > 0 {
			t.Errorf("left open: %q", names)
		}
	})
	return path
}

func partialOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".part")
}

// beside are the names in the directory of a path.
func beside(t *testing.T, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// lists checks what is in the directory of a path.
func lists(t *testing.T, path string, want ...string) {
	t.Helper()
	if names := beside(t, path); !slices.Equal(names, want) {
		t.Errorf("in the directory: %q, want %q", names, want)
	}
}

// holds checks what is at a path, and its mode.
func holds(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file holds %d bytes (%v), want %d", len(got), err, len(want))
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
}

func hashOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

func TestDownloadFile(t *testing.T) {
	for _, size := range []int{0, 1, 1000, 256 << 10, 1_000_000} {
		content := sample(size)
		fake := fakeJob(t, updatertest.JobContent{Content: bytes.NewReader(content), ContentType: "text/csv", ETag: new(`"canary"`), LastModified: time.Unix(1e9, 0)},
			updatertest.Fault{Header: http.Header{"Content-Disposition": {`attachment; filename="../evil"`}, "X-Request-Id": {"req-7"}}})
		path := target(t)
		var progress []updater.FileProgress
		file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{Progress: func(p updater.FileProgress) { progress = append(progress, p) }})
		if err != nil {
			t.Fatal(err)
		}
		want := updater.File{
			Size: int64(size), SHA256: hashOf(content), ContentType: "text/csv", ETag: `"canary"`, LastModified: "Sun, 09 Sep 2001 01:46:40 GMT",
			RequestID: "req-7", Verified: true, Attempts: 1,
		}
		if *file != want {
			t.Errorf("%+v", show(file))
		}
		holds(t, path, content)
		lists(t, path, "result.csv")
		if n := len(progress); n != (size+256<<10-1)/(256<<10) || n > 0 && progress[n-1] != (updater.FileProgress{Bytes: int64(size), Total: int64(size)}) {
			t.Errorf("progress %v", progress)
		}
		testkit.NoLeak(t, file, "canary")
	}
	t.Chdir(t.TempDir()) // a path of a name alone
	if _, err := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)}).Client().DownloadFile(t.Context(), "7", "result.csv", updater.FileOptions{}); err != nil {
		t.Fatal(err)
	}
	holds(t, "result.csv", sample(1000))
}

// TestUnverifiedEnd: a content whose end is not marked becomes no file unasked.
func TestUnverifiedEnd(t *testing.T) {
	path := target(t)
	fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)}, updatertest.Fault{Unframed: true}, updatertest.Fault{Unframed: true}, updatertest.Fault{Unframed: true}, updatertest.Fault{Chunked: true})
	_, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{})
	if !errors.Is(err, updater.ErrUnverified) {
		t.Error(err)
	}
	lists(t, path, "result.csv")
	file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{AcceptUnverified: true})
	if err != nil || file.Verified || file.Size != 1000 {
		t.Errorf("%v, %v", file, err)
	}
	download, err := fake.Client().Download(t.Context(), "7")
	if err != nil || download.Verified || download.Length != -1 {
		t.Fatalf("%v, %v", download, err)
	}
	download.Close()
	file, err = fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{})
	if err != nil || !file.Verified || file.SHA256 != hashOf(sample(1000)) {
		t.Errorf("in chunks: %v, %v", file, err)
	}
	synctest.Test(t, func(t *testing.T) { // a stall, and the service's word that nothing is missing
		fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)}, updatertest.Fault{Unframed: true, BodyDelay: time.Hour, DelayAfter: 500},
			updatertest.Fault{Status: 416, Header: http.Header{"Content-Range": {"bytes */500"}}})
		total := int64(0)
		file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{AcceptUnverified: true, Progress: func(p updater.FileProgress) { total = p.Total }})
		if err != nil || !file.Verified || file.Size != 500 || total != 500 {
			t.Errorf("%+v of %d bytes, %v", show(file), total, err)
		}
	})
}

func TestUnusablePaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Not os.DevNull: a library that is wrong here would replace it for the whole machine.
	socket := filepath.Join(dir, "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)})
	for _, test := range []struct {
		path string
		is   error
		says string
	}{
		{"", updater.ErrInvalidArgument, "names no file"},
		{dir + "/", updater.ErrInvalidArgument, "names no file"},
		{dir + "/..", updater.ErrInvalidArgument, "names no file"},
		{dir, syscall.EISDIR, "is a directory"},
		{filepath.Join(dir, "canary", "result"), fs.ErrNotExist, "no such file or directory"},
		{filepath.Join(file, "result"), nil, "the directory cannot be opened"},
		{filepath.Join(dir, strings.Repeat("n", 241)), syscall.ENAMETOOLONG, "too long"},
		{socket, fs.ErrExist, "no regular file"},
		{filepath.Join(dir, "a\x00b"), syscall.EINVAL, ""},
	} {
		got, err := fake.Client().DownloadFile(t.Context(), "7", test.path, updater.FileOptions{})
		if _, own := err.(*updater.Error); !own || got != nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v, %v", test.path, got, err)
		}
		if cause := err.(*updater.Error).Cause(); (cause == nil) != (test.is == updater.ErrInvalidArgument) || !errors.Is(cause, test.is) && cause != nil && test.is != nil {
			t.Errorf("%q: caused by %v", test.path, cause)
		}
		testkit.NoLeak(t, err, "canary", filepath.Base(filepath.Dir(dir)))
	}
	if names := beside(t, file); len(fake.Requests()) > 0 || !slices.Equal(names, []string{"file", "socket"}) {
		t.Errorf("%d requests, and in the directory: %q", len(fake.Requests()), names)
	}
}

func TestUnusableFileOptions(t *testing.T) {
	fake := fakeJob(t, updatertest.JobContent{})
	for name, o := range map[string]updater.FileOptions{
		"interval": {Wait: updater.WaitOptions{Interval: -1}}, "wait": {Wait: updater.WaitOptions{MaxWait: -1}},
		"interval alone": {Wait: updater.WaitOptions{Interval: 1}}, "wait alone": {Wait: updater.WaitOptions{MaxWait: 1}},
	} {
		if _, err := fake.Client().DownloadFile(t.Context(), "7", target(t), o); !errors.Is(err, updater.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var none context.Context
	if _, err := fake.Client().DownloadFile(none, "7", target(t), updater.FileOptions{}); !errors.Is(err, updater.ErrInvalidArgument) {
		t.Error(err)
	}
	if _, err := new(updater.Client).DownloadFile(t.Context(), "7", target(t), updater.FileOptions{}); !errors.Is(err, updater.ErrInvalidArgument) {
		t.Error(err)
	}
}

// TestBusyPath: of two downloads to one path the second is told.
func TestBusyPath(t *testing.T) {
	path := target(t)
	client := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1_000_000)}).Client()
	second := func(updater.FileProgress) {
		if _, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{}); !errors.Is(err, updater.ErrBusy) || !strings.Contains(err.Error(), "under way") {
			t.Error(err)
		}
	}
	if _, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{Progress: second}); err != nil {
		t.Error(err)
	}
	holds(t, path, sample(1_000_000))
	if _, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestCrowdedPath: many downloads at once to one path leave one whole content.
func TestCrowdedPath(t *testing.T) {
	path := target(t)
	content := sample(300) // so that most of the time one ends and another begins
	fake := fakeJob(t, updatertest.JobContent{Content: bytes.NewReader(content)})
	client := fake.Client()
	ended := make(chan error)
	for range 8 {
		go func() {
			for range 100 {
				file, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{})
				if err == nil && file.SHA256 != hashOf(content) || err != nil && !errors.Is(err, updater.ErrBusy) {
					ended <- fmt.Errorf("%v, %w", file, err)
					return
				}
			}
			ended <- nil
		}()
	}
	for range 8 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	holds(t, path, content)
	lists(t, path, "result.csv")
}
