package main

import (
	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/fleet/bincache"
	"github.com/carddata/carddata-go/examples/fleet/quota"
	"github.com/carddata/carddata-go/examples/fleet/redisclient"
)

// newLoader is the code that the README shows.
func newLoader(serviceURL, apiKey, redisURL string) (*bins.Loader, error) {
	redisclient.Silence() // go-redis would write addresses to standard error
	shared, err := redisclient.New(redisURL)
	if err != nil {
		return nil, err
	}
	limiter, err := quota.New(shared, "carddata-bins", 200, 1) // the same in every replica
	if err != nil {
		return nil, err
	}
	client, err := bins.NewClient(serviceURL, bins.StaticToken(apiKey), bins.WithLimiter(limiter))
	if err != nil {
		return nil, err
	}
	return bins.NewLoader(client, bins.LoaderOptions{Cache: bincache.New(shared)})
}
