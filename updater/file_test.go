package updater_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/proof/testkit"
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

// openFiles returns the names below a directory that this process has open, if the system
// tells.
func openFiles(dir string) (names []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		if name, _ := os.Readlink("/proc/self/fd/" + entry.Name()); strings.HasPrefix(name, dir) {
			names = append(names, name)
		}
	}
	return names
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

// private is the mode of a private file. On Windows, Go makes modes up.
var private = map[bool]fs.FileMode{false: 0o600, true: 0o666}[runtime.GOOS == "windows"]

// holds checks what is at a path, and its mode.
func holds(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file holds %d bytes (%v), want %d", len(got), err, len(want))
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != private {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
}

func hashOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

func TestDownloadFile(t *testing.T) {
	for _, size := range []int{0, 1, 1000, 256 << 10, 1_000_000} {
		content := sample(size)
		fake := fakeJob(t, updatertest.Job{Content: bytes.NewReader(content), ContentType: "text/csv", ETag: new(`"canary"`), LastModified: time.Unix(1e9, 0)},
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
		var log bytes.Buffer
		debugLog(&log).Info("done", "file", file)
		if want := fmt.Sprintf("file.size=%d file.sha_256=%s file.unchanged=false file.attempts=1 file.resumes=0 file.resumed_bytes=0 file.request_id=req-7", size, hashOf(content)); !strings.Contains(log.String(), want) {
			t.Errorf("logged %s", &log)
		}
	}
	t.Chdir(t.TempDir()) // a path of a name alone
	if _, err := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)}).Client().DownloadFile(t.Context(), "7", "result.csv", updater.FileOptions{}); err != nil {
		t.Fatal(err)
	}
	holds(t, "result.csv", sample(1000))
}

// TestEndOfAStream: some services, such as Jetty, mark the end of a stream only if the client lets
// them keep the connection.
func TestEndOfAStream(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Close {
			connection, buffer, _ := w.(http.Hijacker).Hijack()
			defer connection.Close()
			buffer.WriteString("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ncontent")
			buffer.Flush()
			return
		}
		http.NewResponseController(w).Flush()
		io.WriteString(w, "content")
	}))
	defer service.Close()
	client, err := updater.NewClient(service.URL, "m-1", updater.StaticToken("t"), updater.WithInsecureHTTP())
	if err != nil {
		t.Fatal(err)
	}
	path := target(t)
	for range 2 {
		if file, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{}); err != nil || !file.Verified {
			t.Errorf("%+v, %v", file, err)
		}
	}
	holds(t, path, []byte("content"))
}

// TestUnverifiedEnd: content without length or chunks becomes a file only with
// AcceptUnverified.
func TestUnverifiedEnd(t *testing.T) {
	path := target(t)
	fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)}, unframed, unframed, unframed, inChunks)
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
}

func TestUnusablePaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)})
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
		{filepath.Join(file, "result"), nil, "the path cannot be examined"},
		{filepath.Join(dir, strings.Repeat("n", 250)), syscall.ENAMETOOLONG, "too long"},
		{filepath.Join(dir, "a\x00b"), syscall.EINVAL, ""},
	} {
		got, err := fake.Client().DownloadFile(t.Context(), "7", test.path, updater.FileOptions{})
		if _, own := err.(*updater.Error); !own || got != nil || test.is != nil && !errors.Is(err, test.is) || runtime.GOOS != "windows" && !strings.Contains(strings.ToLower(err.Error()), test.says) {
			t.Fatalf("%q: %v, %v", test.path, got, err)
		}
		if cause := err.(*updater.Error).Cause(); (cause == nil) != (test.is == updater.ErrInvalidArgument) || !errors.Is(cause, test.is) && cause != nil && test.is != nil {
			t.Errorf("%q: caused by %v", test.path, cause)
		}
		testkit.NoLeak(t, err, "canary", filepath.Base(filepath.Dir(dir)))
	}
	if lists(t, file, "file"); len(fake.Requests()) > 0 {
		t.Errorf("%d requests", len(fake.Requests()))
	}
}

// TestCheck: Check reads the whole content, also after a resume. Content that it refuses does
// not get the path, and no part stays.
func TestCheck(t *testing.T) {
	content := sample(100_000)
	fake := fakeJob(t, updatertest.Job{Content: bytes.NewReader(content), ContentType: "text/csv"}, updatertest.Fault{Truncate: 50_000})
	path, refusal := target(t), errors.New("canary")
	o := updater.FileOptions{Check: func(got *io.SectionReader, h http.Header) error {
		read, err := io.ReadAll(got)
		if err != nil || !bytes.Equal(read, content) || h.Get("Content-Type") != "text/csv" {
			t.Errorf("checked %d bytes, %v, %v", len(read), err, h)
		}
		holdsOld(t, path)
		return refusal
	}}
	client := fake.Client(updater.WithRetryWait(0, 0))
	_, err := client.DownloadFile(t.Context(), "7", path, o)
	if failed, ok := err.(*updater.Error); !ok || failed.Cause() != refusal || failed.Condition() != "refused" || !errors.Is(err, refusal) || strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
	holdsOld(t, path)
	lists(t, path, "result.csv")
	refusal = nil
	if _, err := client.DownloadFile(t.Context(), "7", path, o); err != nil {
		t.Error(err)
	}
	holds(t, path, content)
}
