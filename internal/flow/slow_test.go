package flow

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// One request that takes minutes among hundreds that take 50 ms does not slow the others down
// afterwards, if their pace is limited.
func TestOneSlowRequestChangesNoPace(t *testing.T) {
	for _, patient := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const slowest, end = 3 * time.Minute, 6 * time.Minute
			w, began := New(patient, nil), time.Now()
			var mu sync.Mutex
			inFlight, accepted := 0, map[time.Duration]int{} // by minute
			slow := false
			var workers sync.WaitGroup
			for range 8 {
				workers.Go(func() {
					for time.Since(began) < end {
						request, err := w.Wait(t.Context())
						if pause, ok := errors.AsType[*Pause](err); ok {
							time.Sleep(pause.Left)
							continue
						}
						mu.Lock()
						inFlight++
						refused, took := inFlight > 4, roundTrip
						if !refused && !slow && time.Since(began) > time.Minute {
							slow, took = true, slowest
						}
						mu.Unlock()
						left := time.Now()
						time.Sleep(took)
						mu.Lock()
						inFlight--
						if !refused {
							accepted[time.Since(began).Truncate(time.Minute)]++
						}
						mu.Unlock()
						if refused {
							w.Failed(request, "503")
						} else {
							w.Succeeded(request, time.Since(left))
						}
					}
				})
			}
			workers.Wait()
			if before, after := accepted[0], accepted[slowest+time.Minute]; !slow || before < 1000 || after < before/2 { // as many in 80 runs
				t.Errorf("patient %t: %d in the minute before the slow one, %d in the minute after it", patient, before, after)
			}
		})
	}
}
