package updater

import "sync"

// A follower works behind a file that grows, in a goroutine of its own.
type follower struct {
	to    chan int64 // how far the file is; the latest alone counts
	close func()     // the file has all that it will have
	ended chan struct{}
	err   error // of the work, once it has ended
}

// follow calls work whenever the file has grown, until it fails.
func follow(work func(to int64) error) *follower {
	f := &follower{to: make(chan int64, 1), ended: make(chan struct{})}
	f.close = sync.OnceFunc(func() { close(f.to) })
	go func() {
		defer close(f.ended)
		for to := range f.to {
			if f.err == nil {
				f.err = work(to)
			}
		}
	}()
	return f
}

// grow is not called by two goroutines at once.
func (f *follower) grow(to int64) {
	select {
	case <-f.to:
	default:
	}
	f.to <- to
}

// wait returns once the work is done on all that the file has grown to.
func (f *follower) wait() error {
	f.close()
	<-f.ended
	return f.err
}
