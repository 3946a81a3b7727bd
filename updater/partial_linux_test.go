package updater

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

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

// TestUnknownMount: a file that cannot be opened, of which no mount is known, is let pass.
func TestUnknownMount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := openPartial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(path) // who may do anything can open what is there
	if err := p.checkReplaceable(info); err != nil {
		t.Error(err)
	}
}
