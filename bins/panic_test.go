package bins_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/carddata/carddata-go/bins"
)

// What the caller's own code panics with reaches the caller, who can recover. Nobody waits for Set
// of a cache, so its panic is a failure of the cache.
func TestPanicsReachTheCaller(t *testing.T) {
	recovered := func(f func()) (reached bool) {
		defer func() {
			value := recover()
			_, broken := value.(runtime.Error)
			reached = value != nil && !broken
		}()
		f()
		return false
	}
	for _, of := range []string{"token source", "Get", "Set", "input"} {
		synctest.Test(t, func(t *testing.T) {
			var broken atomic.Bool
			broken.Store(true)
			call := func(is string) error {
				if broken.Load() && is == of {
					panic("on purpose")
				}
				return nil
			}
			cache := newSharedCache()
			cache.get = func(context.Context) error { return call("Get") }
			cache.set = func(context.Context) error { return call("Set") }
			source := bins.TokenFunc(func(context.Context) (string, error) { return "token", call("token source") })
			s := &service{}
			input := func(yield func(string) bool) {
				_ = call("input")
				yield("422222")
			}
			if got := recovered(func() {
				for range s.client(t, bins.WithTokenSource(source)).LookupAll(t.Context(), input, bins.BulkOptions{Cache: cache}) {
				}
			}); got != (of != "Set") {
				t.Errorf("a panic of the %s reaches a bulk lookup: %v", of, got)
			}

			l := loader(t, s, bins.LoaderOptions{Cache: cache}, bins.WithTokenSource(source))
			var callers sync.WaitGroup
			for range 3 {
				callers.Go(func() {
					if got := recovered(func() { _, _ = l.Load(t.Context(), "411111") }); got != (of == "token source" || of == "Get") {
						t.Errorf("a panic of the %s reaches a caller of Load: %v", of, got)
					}
				})
			}
			callers.Wait()
			synctest.Wait() // for Set
			broken.Store(false)
			if _, err := l.Load(t.Context(), "411111"); err != nil {
				t.Errorf("%s: the loader does not go on: %v", of, err)
			}
		})
	}
}
