package updater

import (
	"os"
	"sync"
)

// syncEvery is how much is written before the disk is told to begin: much more
// than it takes in a moment, and little beside what a system holds back by itself.
const syncEvery = 32 << 20

// A syncer has the disk work while content is still coming, in a goroutine of its
// own, so that little is left to be done in the end.
type syncer struct {
	due  chan struct{}
	stop func() error // waits for the end, and returns the first failure
}

func startSyncer(file *os.File) *syncer {
	f := &syncer{due: make(chan struct{})}
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range f.due {
			// A failure is told once, to whoever syncs next.
			if err := file.Sync(); err != nil && failed == nil {
				failed = err
			}
		}
	}()
	f.stop = sync.OnceValue(func() error {
		close(f.due)
		<-ended
		return failed
	})
	return f
}

// begin starts a sync unless one is under way, and tells whether it did.
func (f *syncer) begin() bool {
	select {
	case f.due <- struct{}{}:
		return true
	default:
		return false
	}
}
