// Package quota shares one rate limit between any number of processes, through Redis.
package quota

import (
	"context"
	"errors"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/carddata/carddata-go/bins"
)

// A Limiter limits requests. All limiters of the same name on the same Redis share one
// limit. It works with all three packages, and is safe for concurrent use.
//
// In any window of time d, Redis allows at most burst + limit × d requests. If Redis has
// lost its data, as after a restart without persistence, it allows a burst once more.
type Limiter struct {
	limiter *redis_rate.Limiter
	name    string
	limit   redis_rate.Limit
	turn    chan struct{} // held by the caller of this process that asks Redis
}

var _ bins.Limiter = (*Limiter)(nil)

// New returns the limiter called name: limit requests in each period, burst of them at once.
// All limiters of one name should have the same limit. The client needs
// ContextTimeoutEnabled, or a stalled Redis delays calls beyond their deadlines.
func New(client redis.UniversalClient, name string, limit int, period time.Duration, burst int) (*Limiter, error) {
	switch {
	case client == nil || name == "":
		return nil, errors.New("quota: no Redis client, or no name")
	case limit < 1 || period <= 0 || burst < 1:
		return nil, errors.New("quota: limit, period and burst must be positive")
	}
	return &Limiter{
		redis_rate.NewLimiter(client), name, redis_rate.Limit{Rate: limit, Period: period, Burst: burst}, make(chan struct{}, 1),
	}, nil
}

// Wait returns nil when one request may be sent. Otherwise it returns the error of ctx or
// of Redis. If the deadline of ctx comes before the next request is allowed, it returns
// [context.DeadlineExceeded] at once.
//
// Callers of one process wait in line, so that only one of them asks Redis at a time.
func (l *Limiter) Wait(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		leave, err := l.limiter.Allow(ctx, l.name, l.limit)
		if err != nil || leave.Allowed > 0 {
			return err
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < leave.RetryAfter {
			return context.DeadlineExceeded
		}
		select {
		case <-time.After(leave.RetryAfter):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
