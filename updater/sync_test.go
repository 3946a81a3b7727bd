package updater

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestFlusherTells: a failure of the disk is told, as the next sync would not
// tell it again.
func TestFlusherTells(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	p := &partial{file: file}
	transfer := &transfer{partial: p, flusher: flush(file)}
	for !transfer.flusher.begin() {
		runtime.Gosched()
	}
	if err := transfer.flush(); !errors.Is(err, os.ErrClosed) || !p.doubtful {
		t.Errorf("%v, doubtful %v", err, p.doubtful)
	}
}
