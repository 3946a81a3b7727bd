package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/carddata/carddata-go/examples/fleet/internal/redisserver"
	"github.com/carddata/carddata-go/examples/fleet/redisclient"
	"github.com/carddata/carddata-go/examples/internal/target"
)

// openRedis returns the URL of the Redis that REDIS_URL names, if it responds, and
// otherwise of one that it starts, and says which.
func openRedis(ctx context.Context, stderr io.Writer, env func(string) (string, bool)) (url string, closeRedis func() error, err error) {
	why := "REDIS_URL is not set"
	if named, set := env("REDIS_URL"); set {
		client, err := redisclient.New(named)
		if err != nil {
			return "", nil, target.Usage("REDIS_URL: %v", err)
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		err = client.Ping(ctx).Err()
		if err == nil {
			fmt.Fprintln(stderr, "redis as REDIS_URL says")
			return named, func() error { return nil }, nil
		}
		// Who has a Redis means that one: another in its place would hide the mistake.
		if refusal := redisclient.Refusal(err); refusal != "" {
			return "", nil, target.Usage("REDIS_URL: the Redis refuses: %s", refusal)
		}
		why = "none responds at REDIS_URL"
	}
	server, err := redisserver.Start(ctx)
	switch {
	case errors.Is(err, redisserver.ErrNotInstalled):
		return "", nil, target.Usage("%s, and %v", why, err)
	case err != nil:
		return "", nil, err
	}
	fmt.Fprintf(stderr, "redis %s (%s)\n", server.URL, why)
	return server.URL, server.Close, nil
}
