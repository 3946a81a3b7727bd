package bins_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/carddata/carddata-go/bins"
)

// What the caller's own code panics with reaches the caller, who can recover, and
// leaves no goroutine.
func TestPanicsReachTheCaller(t *testing.T) {
	for name, fail := range map[string]func(){
		"a panic": func() { panic("on purpose") }, "the end of the goroutine": runtime.Goexit,
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			source := bins.TokenFunc(func(context.Context) (string, error) {
				if calls++; calls == 3 {
					fail()
				}
				return "token", nil
			})
			client := (&service{}).client(t, bins.WithTokenSource(source))
			results := 0
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s is lost to a bulk lookup", name)
					}
				}()
				for range client.LookupAll(t.Context(), numbered(1000), bins.BulkOptions{Concurrency: 1}) {
					results++
				}
			}()
			if results > 100 {
				t.Errorf("%s: %d results of the two requests before", name, results)
			}

			calls = 2
			l, err := bins.NewLoader(client, bins.LoaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var callers sync.WaitGroup
			recovered := make([]bool, 3)
			for i := range recovered {
				callers.Go(func() {
					defer func() { recovered[i] = recover() != nil }()
					l.Load(t.Context(), "411111")
				})
			}
			callers.Wait()
			if slices.Contains(recovered, false) {
				t.Errorf("%s is lost to a loader: %v", name, recovered)
			}
			if _, err := l.Load(t.Context(), "411111"); err != nil {
				t.Errorf("%s: the loader does not go on: %v", name, err)
			}
		})
	}
}
