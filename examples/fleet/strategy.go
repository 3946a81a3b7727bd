package main

import (
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/fleet/quota"
)

// A strategy is a way to keep a fleet within one quota.
type strategy struct {
	Name string
	// limiter makes the limiter of one of so many replicas.
	limiter func(client redis.UniversalClient, replicas int) (bins.Limiter, error)
}

const (
	// The quota of the service: so many requests a second, of which so many may
	// come at once.
	quotaLimit = 200
	quotaBurst = 20
	// The limiters keep a distance, and leave the burst to what happens on the way.
	limiterBurst = 1

	quotaName = "carddata-fleet-example"
)

var strategies = []strategy{
	{"each the whole quota", func(redis.UniversalClient, int) (bins.Limiter, error) {
		return rate.NewLimiter(quotaLimit, limiterBurst), nil
	}},
	{"each its part of the quota", func(_ redis.UniversalClient, replicas int) (bins.Limiter, error) {
		return rate.NewLimiter(rate.Limit(quotaLimit)/rate.Limit(replicas), limiterBurst), nil
	}},
	{"shared through Redis", func(client redis.UniversalClient, _ int) (bins.Limiter, error) {
		return quota.New(client, quotaName, quotaLimit, limiterBurst)
	}},
}
