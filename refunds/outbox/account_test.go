//go:build unix

package outbox

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// TestBadAccount: an account that fails, with two thirds of the refunds, holds up no other one: each of
// its refunds is tried once before the others are through, and none if it has to wait.
func TestBadAccount(t *testing.T) {
	const good = 30
	for name, test := range map[string]struct {
		fault sandbox.Fault
		tried int64 // of its refunds, at most
	}{
		"closed":  {sandbox.Fault{Status: 403}, 2 * good},
		"failing": {sandbox.Fault{Status: 500}, 2 * good},
		"limited": {sandbox.Fault{Status: 429, RetryAfter: time.Hour}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *system) {
				s.enqueueAll(func(yield func(Item) bool) {
					for i := range 3 * good {
						account := "bad"
						if i%3 == 0 {
							account = "good"
						}
						if !yield(Item{AccountID: account, Refund: refund(fmt.Sprint(i), 5)}) {
							return
						}
					}
				})
				ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute) // as in drain
				defer stop()
				var accepted, tried atomic.Int64
				s.fake.ScriptFunc(func(r sandbox.Request) sandbox.Fault {
					if strings.Contains(r.Path, "/bad/") {
						tried.Add(1)
						return test.fault
					}
					if accepted.Add(1) == good {
						stop()
					}
					return sandbox.Fault{}
				})
				s.w.Concurrency = 4
				if err := s.box.Run(ctx, s.w.Config); err != nil {
					t.Fatal(err)
				}
				if accepted.Load() != good || tried.Load() > test.tried+4 {
					t.Errorf("%d accepted, after %d of the other account", accepted.Load(), tried.Load())
				}
			})
		})
	}
}
