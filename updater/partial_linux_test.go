package updater

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFailedSync: a file that could not be synced is not built upon, as the bytes
// that it shows need not be on the disk.
func TestFailedSync(t *testing.T) {
	dir := t.TempDir()
	p, err := openPartial(filepath.Join(dir, "result"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	v := version{Length: 10, ETag: `"v1"`, Validator: `"v1"`}
	if err := p.begin("resource", v, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := p.file.WriteAt(make([]byte, 10), 0); err != nil {
		t.Fatal(err)
	}
	const opath = 0x200000 // a descriptor that can be examined, but not synced
	fd, err := syscall.Open(filepath.Join(dir, p.name), opath, 0)
	if err != nil {
		t.Fatal(err)
	}
	written := p.file
	defer written.Close()
	p.file = os.NewFile(uintptr(fd), written.Name())
	if err := p.sync(); !errors.Is(err, syscall.EBADF) {
		t.Fatalf("synced: %v", err)
	}
	p.discardOrKeep()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

type someFile struct {
	fs.FileInfo
	mode fs.FileMode
	user uint32
}

func (f someFile) Mode() fs.FileMode { return f.mode }
func (f someFile) Sys() any          { return &syscall.Stat_t{Uid: f.user} }

func TestSticky(t *testing.T) {
	for _, test := range []struct {
		dir, file someFile
		user      int
		want      bool
	}{
		{someFile{mode: fs.ModeDir | fs.ModeSticky | 0o777}, someFile{user: 7}, 8, true},
		{someFile{mode: fs.ModeDir | fs.ModeSticky | 0o777}, someFile{user: 8}, 8, false},
		{someFile{mode: fs.ModeDir | fs.ModeSticky | 0o777, user: 8}, someFile{user: 7}, 8, false},
		{someFile{mode: fs.ModeDir | fs.ModeSticky | 0o777}, someFile{user: 7}, 0, false},
		{someFile{mode: fs.ModeDir | 0o777}, someFile{user: 7}, 8, false},
	} {
		if got := isSticky(test.dir, test.file, test.user); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
