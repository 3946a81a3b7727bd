// Package redisclient connects to Redis in a way that a request path can depend
// on: every command ends by its context, and soon.
package redisclient

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// New returns a client of the Redis at a redis://, rediss:// or unix:// URL. It
// connects when it is used.
func New(url string) (*redis.Client, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("not a URL of a Redis") // err may quote its password
	}
	// By default a deadline is ignored until a command has waited 5 seconds.
	o.ContextTimeoutEnabled = true
	o.ReadTimeout, o.WriteTimeout = time.Second, time.Second
	o.DialTimeout, o.PoolTimeout = time.Second, time.Second
	// By default a refused connection is tried 20 times.
	o.DialerRetries, o.MaxRetries = 1, 1
	o.MinIdleConns = 1
	// Beyond Redis 7; tried in vain with each connection.
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

// Silence keeps go-redis from writing addresses and connection failures to the
// standard error of the whole process. They reach the caller as errors anyway.
func Silence() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
