package transport

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/flow"
)

// New connections, which take some round trips, are no queue: bursts after single calls, whose connections
// were dialled ahead, wait for no place.
func TestNewConnectionsAreNoQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const group = 20 // of what flow compares
		p := &peer{dialTook: 90 * time.Millisecond}
		c := p.client(t)
		window := flow.New(nil)
		call := write()
		call.Door = window
		send := func() {
			if r := c.Do(t.Context(), call, nil); r.Failure != nil {
				t.Error(r.err())
			}
		}
		for range group {
			send()
			time.Sleep(60 * time.Millisecond)
		}
		for range 5 {
			var all sync.WaitGroup
			for range group {
				all.Go(send)
			}
			synctest.Wait()
			if s := window.State(); s.Waiting > 0 || s.Level > 0 {
				t.Errorf("%d calls wait, level %.1f", s.Waiting, s.Level)
			}
			all.Wait()
			time.Sleep(4 * time.Second) // no connection that was dialled ahead is left
		}
	})
}
