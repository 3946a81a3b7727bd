package bincache_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
	"github.com/carddata/carddata-go/examples/engines/redis/bincache"
	"github.com/carddata/carddata-go/examples/engines/redis/internal/redisserver"
)

func connect(t *testing.T, s *redisserver.Server) redis.UniversalClient {
	client := s.Connect()
	t.Cleanup(func() { client.Close() })
	return client
}

// run looks up cards as a replica that has just started, and returns how many requests it
// sent.
func run(t *testing.T, fake *binstest.Server, client redis.UniversalClient, cards []string, o bins.BulkOptions) int {
	t.Helper()
	before := len(fake.Requests())
	o.Cache = bincache.New(client)
	results := 0
	for r, err := range fake.Client().LookupAll(t.Context(), slices.Values(cards), o) {
		if err != nil {
			t.Fatal(err)
		}
		if card, err := r.Card(); err != nil || card.CardBrand == "" {
			t.Errorf("%v: %v, %v", r.Input, card, err)
		}
		results++
	}
	if results != len(cards) {
		t.Errorf("%d results for %d cards", results, len(cards))
	}
	return len(fake.Requests()) - before
}

func numbered(n int) []string {
	var cards []string
	for i := range n {
		cards = append(cards, fmt.Sprintf("411111%02d", i))
	}
	return cards
}

// eventually tries again: on a busy machine, Redis may exceed the library's timeout for
// caches several times.
func eventually(t *testing.T, what string, works func() bool) {
	t.Helper()
	for range 100 {
		if works() {
			return
		}
	}
	t.Error(what)
}

func TestReplicasShareResponses(t *testing.T) {
	s := redisserver.ForTest(t)
	client := connect(t, s)
	fake := binstest.NewServer(t)
	cards := numbered(100)
	for _, o := range []bins.BulkOptions{{}, {Enhanced: new(true)}} {
		if n := run(t, fake, client, cards, o); n != 2 {
			t.Errorf("the first replica sent %d requests, want 2", n)
		}
		eventually(t, "every replica sent requests", func() bool { return run(t, fake, client, cards, o) == 0 })
	}
	keys := client.Keys(t.Context(), "*").Val()
	if len(keys) != 200 {
		t.Errorf("%d keys", len(keys))
	}
	for _, key := range keys[:5] {
		if ttl := client.TTL(t.Context(), key).Val(); ttl < time.Hour || ttl > 24*time.Hour {
			t.Errorf("%s is kept for %s", key, ttl)
		}
	}
}

func TestValues(t *testing.T) {
	client := connect(t, redisserver.ForTest(t))
	c := bincache.New(client)
	values := map[string][]byte{"a": []byte("\x00\xff\r\n"), "b": {}}
	if err := c.Set(t.Context(), values, time.Minute); err != nil {
		t.Fatal(err)
	}
	got, err := c.Get(t.Context(), []string{"a", "b", "c"})
	if err != nil || len(got) != 2 || !bytes.Equal(got["a"], values["a"]) || len(got["b"]) != 0 {
		t.Errorf("%q, %v", got, err)
	}
}

// TestWithoutRedis sends more requests, and gets all results.
func TestWithoutRedis(t *testing.T) {
	s := redisserver.ForTest(t)
	client := connect(t, s)
	fake := binstest.NewServer(t)
	s.Kill()
	if n := run(t, fake, client, numbered(50), bins.BulkOptions{}); n != 1 {
		t.Errorf("%d requests", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := bincache.New(client).Set(ctx, map[string][]byte{"a": nil}, time.Minute); err == nil {
		t.Error("no error without Redis")
	}
}
