package transport

import (
	"context"
	"time"
)

// An alarm ends an attempt that takes too long.
type alarm struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer // nil before it is set
}

// set lets the alarm go off after d from now.
func (a *alarm) set(d time.Duration) {
	if a.timer != nil {
		a.timer.Reset(d)
		return
	}
	cancel := a.cancel
	a.timer = time.AfterFunc(d, func() { cancel(ErrTimeout) })
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
