package bins_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// If the service fails, or sends anything but a card, the cache serves the known card at once, until StaleFor has passed.
// A new card replaces it.
func TestKnownCardIsNotTakenAway(t *testing.T) {
	const card = "45717360"
	for name, fault := range map[string]sandbox.Fault{
		"503":                    {Status: 503},
		"a hanging service":      {Delay: time.Hour},
		"401":                    {Status: 401},
		"an hour of Retry-After": {Status: 429, RetryAfter: time.Hour},
		"a page":                 {Body: new("<html>")},
		"cards null":             {Body: new(`{"cards":null}`)},
		"no cards":               {Body: new(`{"cards":[]}`)},
		"a cut-off response":     {Truncate: 5},
		"an unreadable item":     {Body: new(`{"cards":[{"bin":"45717360","data":"oops"}]}`)},
		"neither card nor error": {Body: new(`{"cards":[{"bin":"45717360","data":null,"error":null}]}`)},
		"data without a card":    {Body: new(`{"cards":[{"bin":"45717360","data":{}}]}`)},
		"card null":              {Body: new(`{"cards":[{"bin":"45717360","data":{"card":null}}]}`)},
		"an empty card":          {Body: new(`{"cards":[{"bin":"45717360","data":{"card":{}}}]}`)},
		"a card of nulls":        {Body: new(`{"cards":[{"bin":"45717360","data":{"card":{"card_brand":null,"pan_or_token":"x","additional_card_brands":[]}}}]}`)},
		"an error":               {Body: new(`{"cards":[{"bin":"45717360","error":"upstream timeout"}]}`)},
		"an error and a card":    {Body: new(`{"cards":[{"bin":"45717360","error":"upstream timeout","data":{"card":{"card_brand":"WRONG"}}}]}`)},
		"an error object":        {Body: new(`{"error":{"code":"x","message":"y","details":{}}}`)},
	} {
		for _, by := range []string{"a loader", "a bulk lookup", "a loader that keeps no errors"} {
			synctest.Test(t, func(t *testing.T) {
				fake := sandbox.NewFake(t, sandbox.Bins)
				o := bins.CacheOptions{TTL: time.Hour, StaleFor: 24 * time.Hour}
				if by == "a loader that keeps no errors" {
					o.NegativeTTL = -1
				}
				memory := bins.NewMemoryCache(o)
				client, err := bins.NewClient(sandbox.BaseURL, bins.StaticToken("key"), bins.WithHTTPClient(fake.HTTPClient()))
				if err != nil {
					t.Fatal(err)
				}
				l, err := bins.NewLoader(client, bins.LoaderOptions{Memory: memory})
				if err != nil {
					t.Fatal(err)
				}
				load := func(want string, stale bool) {
					t.Helper()
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					began := time.Now()
					if r, err := l.Load(ctx, card); err != nil || brand(r) != want || r.Stale != stale || stale && time.Since(began) > 0 {
						t.Errorf("%s, %s: %v, %v after %v, want %s", name, by, r, err, time.Since(began), want)
					}
				}
				load("VISA", false)
				time.Sleep(2 * time.Hour)
				fake.ScriptFunc(func(sandbox.Request) sandbox.Fault { return fault })
				if by == "a bulk lookup" {
					for range client.LookupAll(t.Context(), slices.Values([]string{card}), bins.BulkOptions{Memory: memory, GiveUpAfter: time.Minute}) {
					}
				}
				for range 5 {
					load("VISA", true)
					time.Sleep(4 * time.Hour)
				}
				fake.ScriptFunc(nil)
				fake.SetResult(card, []byte(`{"bin":"`+card+`","data":{"card":{"card_brand":"NEW"}}}`))
				load("VISA", true) // and renews it
				time.Sleep(time.Minute)
				load("NEW", false)
				if stats := l.Stats(); stats.Stale != 6 || stats.Hits != 7 {
					t.Errorf("%s, %s: %+v", name, by, stats)
				}
				time.Sleep(25 * time.Hour)
				load("NEW", false)
			})
		}
	}
}

// A card that the service no longer knows is served until StaleFor has passed, with few requests.
func TestWithdrawnCardEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		withdrawn := false
		s := &service{answer: func(card string) (map[string]any, bool) {
			if withdrawn {
				return map[string]any{"bin": card, "error": "unknown"}, true
			}
			return branded(card, "B"), true
		}}
		l := loader(t, s, bins.LoaderOptions{Memory: bins.NewMemoryCache(bins.CacheOptions{TTL: time.Hour, StaleFor: 10 * time.Hour})})
		for minute := range 14 * 60 {
			r, err := l.Load(t.Context(), "411111")
			if known := minute < 10*60; err != nil || known && brand(r) != "B" || minute > 11*60 && brand(r) != "" {
				t.Fatalf("after %d minutes: %v, %v", minute, r, err)
			}
			s.change(func() { withdrawn = true }) // renewals run in the background
			time.Sleep(time.Minute)
		}
		if n := s.requests.Load(); n > 17 { // one for each hour
			t.Errorf("%d requests", n)
		}
	})
}
