package main

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/engines/redis/bincache"
	"github.com/carddata/carddata-go/examples/engines/redis/internal/redisserver"
	"github.com/carddata/carddata-go/examples/engines/redis/quota"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// newLoader is the code that the README shows.
func newLoader(serviceURL, apiKey string, shared redis.UniversalClient) (*bins.Loader, error) {
	limiter, err := quota.New(shared, "carddata-bins", 200, time.Second, 2) // the same in every replica
	if err != nil {
		return nil, err
	}
	client, err := bins.NewClient(serviceURL, bins.StaticToken(apiKey), bins.WithLimiter(limiter))
	if err != nil {
		return nil, err
	}
	return bins.NewLoader(client, bins.LoaderOptions{PrefixLength: 8, Cache: bincache.New(shared)})
}

func TestLoader(t *testing.T) {
	shared := redisserver.ForTest(t)
	service, err := sandbox.New().ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	client := shared.Connect()
	defer client.Close()
	loader, err := newLoader(service.URL(), "key", client)
	if err != nil {
		t.Fatal(err)
	}
	result, err := loader.Load(t.Context(), "4571736000000000")
	if card, _ := result.Card(); err != nil || card == nil || card.CardBrand != "VISA" {
		t.Errorf("%v, %v", card, err)
	}
}
