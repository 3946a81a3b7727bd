// Package quota shares one rate limit between any number of processes, by way of
// Redis.
package quota

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"
)

const (
	// grace is how long a slot may lie ahead without being confirmed, and so how
	// long nobody is given one after Redis has lost its memory.
	grace = time.Second
	// tolerance is how late a slot may be used. A process that was stopped would
	// otherwise use all those at once that it missed.
	tolerance = 100 * time.Millisecond
	// tries is how many slots may come too late before Wait gives up.
	tries = 5
)

// A Limiter gives leave to send one request at a time, within a limit that all
// limiters of the same name on the same Redis share. It is safe for concurrent
// use.
//
// In any window of time d, all of them together give leave at most
// burst + limit × (d + 100 ms) times: also while Redis is stopped, stalled or
// restarted, and when it loses its data. After a loss, and when a name is used
// for the first time, nobody has leave for a second.
type Limiter struct {
	slots slots
}

// New returns the limiter called name. All of one name should have the same limit,
// in requests a second, and the same burst; New keeps no connection and asks
// nothing of Redis.
func New(client Redis, name string, limit rate.Limit, burst int) (*Limiter, error) {
	const perSecond = 1e6 // Redis' clock counts microseconds
	switch {
	case client == nil:
		return nil, errors.New("quota: no Redis client")
	case name == "":
		return nil, errors.New("quota: no name")
	case !(limit >= 1.0/3600 && limit <= perSecond):
		return nil, errors.New("quota: the limit must be between one an hour and a million a second")
	case burst < 1:
		return nil, errors.New("quota: the burst must be at least 1")
	}
	// Rounded up, so that the limit is never exceeded.
	interval := int64(math.Ceil(perSecond / float64(limit)))
	return &Limiter{newSlots(client, name, interval, burst)}, nil
}

// Wait returns nil when one request may be sent. Whatever else happens it returns
// an error, and nothing may be sent: a [*DeadlineError], at once, if the queue is
// longer than the time until the deadline of ctx, the error of ctx when it ends,
// or an [*UnavailableError]. Leave that comes too late to be used, because ctx
// ended, is lost to all.
func (l *Limiter) Wait(ctx context.Context) error {
	for range tries {
		asked := time.Now()
		s, err := l.slots.reserve(ctx)
		if err != nil {
			return err
		}
		confirmed, err := l.queue(ctx, s)
		if err != nil {
			return err
		}
		// Redis counted the wait from some moment after it was asked.
		if confirmed && time.Since(asked) <= s.wait+tolerance {
			return nil
		}
	}
	return &UnavailableError{errLate}
}

// queue waits for a slot. A slot far ahead has to be confirmed: Redis may have
// lost it and given its time to others.
func (l *Limiter) queue(ctx context.Context, s slot) (confirmed bool, err error) {
	due := time.Now().Add(s.wait)
	if s.wait > grace {
		if err := sleepUntil(ctx, due.Add(-grace)); err != nil {
			return false, err
		}
		if confirmed, err := l.slots.confirm(ctx, s); !confirmed || err != nil {
			return false, err
		}
	}
	return true, sleepUntil(ctx, due)
}

func sleepUntil(ctx context.Context, t time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d := time.Until(t)
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var _ Redis = (redis.UniversalClient)(nil)
