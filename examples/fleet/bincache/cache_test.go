package bincache_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
	"github.com/carddata/carddata-go/examples/fleet/bincache"
	"github.com/carddata/carddata-go/examples/fleet/internal/redistest"
)

// run looks cards up as a replica that has just started, and returns how many
// requests it took.
func run(t *testing.T, fake *binstest.Server, client redis.UniversalClient, cards []string, o bins.BulkOptions) int {
	t.Helper()
	before := len(fake.Requests())
	o.Cache = bincache.New(client)
	results := 0
	for r, err := range fake.Client().LookupAll(t.Context(), slices.Values(cards), o) {
		if err != nil {
			t.Fatal(err)
		}
		if card, err := r.Result.Card(); err != nil || card.CardBrand == "" {
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

// eventually repeats what works as soon as Redis responds within the time that the
// library gives a cache, which a busy machine may take several times for.
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
	s := redistest.Start(t)
	client := redistest.Connect(t, s)
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

func TestCardNumbersStayOutOfRedis(t *testing.T) {
	client := redistest.Connect(t, redistest.Start(t))
	fake := binstest.NewServer(t)
	eventually(t, "the BIN was not kept", func() bool {
		run(t, fake, client, []string{"4111111111111111", "41111111"}, bins.BulkOptions{Ranges: true})
		return client.DBSize(t.Context()).Val() == 1
	})
	for _, key := range client.Keys(t.Context(), "*").Val() {
		if text := key + client.Get(t.Context(), key).Val(); strings.Contains(text, "4111111111111111") {
			t.Errorf("Redis holds a card number: %s", text)
		}
	}
}

func TestValues(t *testing.T) {
	client := redistest.Connect(t, redistest.Start(t))
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

// TestWithoutRedis costs requests, and no response.
func TestWithoutRedis(t *testing.T) {
	s := redistest.Start(t)
	client := redistest.Connect(t, s)
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

// TestStall costs a lookup no more than the library's patience.
func TestStall(t *testing.T) {
	s := redistest.Start(t, "--enable-debug-command", "local")
	client, stalled := redistest.Connect(t, s), redistest.Connect(t, s)
	fake := binstest.NewServer(t)
	run(t, fake, client, numbered(1), bins.BulkOptions{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		stalled.Do(t.Context(), "DEBUG", "SLEEP", 3)
	}()
	time.Sleep(100 * time.Millisecond)
	began := time.Now()
	if n := run(t, fake, client, numbered(1), bins.BulkOptions{}); n != 1 || time.Since(began) > 2500*time.Millisecond {
		t.Errorf("%d requests in %s", n, time.Since(began))
	}
	<-done
}
