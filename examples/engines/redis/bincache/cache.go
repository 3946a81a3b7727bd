// Package bincache keeps responses of BIN lookups in a Redis that replicas share.
package bincache

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/carddata/carddata-go/bins"
)

// A Cache is a [bins.Cache] in Redis. The library makes the keys, without card numbers,
// and sets the time to live and the timeout. The Redis client needs ContextTimeoutEnabled,
// or a stalled Redis delays lookups.
type Cache struct{ client redis.UniversalClient }

var _ bins.Cache = (*Cache)(nil)

// New returns a cache that all clients of the same Redis share.
func New(client redis.UniversalClient) *Cache { return &Cache{client} }

// Get gets all keys in one pipeline. A Cluster client splits a pipeline by node; MGET would
// need all keys in one slot.
func (c *Cache) Get(ctx context.Context, keys []string) (map[string][]byte, error) {
	found := make([]*redis.StringCmd, len(keys))
	_, err := c.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			found[i] = p.Get(ctx, key)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	values := make(map[string][]byte, len(keys))
	for i, key := range keys {
		switch value, err := found[i].Bytes(); {
		case err == nil:
			values[key] = value
		case !errors.Is(err, redis.Nil):
			return nil, err
		}
	}
	return values, nil
}

// Set sets all values in one pipeline. MSET could not set a time to live.
func (c *Cache) Set(ctx context.Context, values map[string][]byte, ttl time.Duration) error {
	_, err := c.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for key, value := range values {
			p.Set(ctx, key, value, ttl)
		}
		return nil
	})
	return err
}
