package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// A faultSource keeps the scripts of the sandbox filled.
type faultSource struct {
	share  float64
	random *rand.Rand
}

func (f *faultSource) feed(ctx context.Context, engine *sandbox.Engine) {
	const ahead = 2000
	refill := time.NewTicker(20 * time.Millisecond)
	defer refill.Stop()
	for {
		for _, area := range []sandbox.Area{sandbox.Bins, sandbox.Refunds, sandbox.Updater} {
			for range ahead - engine.Pending(area) {
				engine.Script(area, f.next())
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-refill.C:
		}
	}
}

func (f *faultSource) next() sandbox.Fault {
	if f.random.Float64() >= f.share {
		return sandbox.Fault{}
	}
	short := time.Duration(f.random.Int64N(int64(50 * time.Millisecond)))
	switch f.random.IntN(12) {
	case 0:
		return sandbox.Fault{DropBefore: true}
	case 1:
		return sandbox.Fault{DropAfter: true}
	case 2:
		return sandbox.Fault{Status: 500}
	case 3:
		return sandbox.Fault{Status: 503}
	case 4:
		return sandbox.Fault{Status: 502, Process: true}
	case 5:
		return sandbox.Fault{Status: 429}
	case 6:
		if f.random.IntN(100) == 0 {
			return sandbox.Fault{Status: 429, RetryAfter: time.Second} // which makes everyone wait
		}
		return sandbox.Fault{Status: 408}
	case 7:
		return sandbox.Fault{HeaderDelay: short}
	case 8:
		return sandbox.Fault{BodyDelay: short}
	case 9:
		return sandbox.Fault{Truncate: 1 + f.random.IntN(200)}
	case 10:
		return sandbox.Fault{Body: "<html>maintenance</html>", ContentType: "text/html"}
	}
	return sandbox.Fault{Status: 400 + f.random.IntN(30)}
}
