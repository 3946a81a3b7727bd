package faults

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
)

// TestClockJumpsUnderACache: results are kept for longer when the wall clock jumps back, and
// requested again when it jumps ahead. Each bubble begins at the same time. A cache from a
// bubble in which a day has passed sees the clock jump back in the next one, and ahead by
// years outside.
func TestClockJumpsUnderACache(t *testing.T) {
	const card = "40000201"
	mock := testkit.NewMock(http.MethodPost, testkit.Base+"/bins/multiple", testkit.Answer(200, `{"cards":[{"bin":"`+card+`","data":{"card":{"card_brand":"`+brandOf(card)+`"}}}]}`))
	memory := bins.NewMemoryCache(bins.CacheOptions{TTL: time.Hour})
	load := func(t *testing.T, requests int) {
		t.Helper()
		before := len(mock.Requests())
		client, err := bins.NewClient(testkit.Base, bins.StaticToken("t"), bins.WithHTTPClient(mock.Client()))
		if err != nil {
			t.Fatal(err)
		}
		loader, err := bins.NewLoader(client, bins.LoaderOptions{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		r, err := loader.Load(t.Context(), card)
		if sent := len(mock.Requests()) - before; err != nil || !isAbout(&r, card) || r.Stale || sent != requests {
			t.Errorf("%v, %v, %d requests", r, err, sent)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		load(t, 1)
	})
	synctest.Test(t, func(t *testing.T) {
		load(t, 0)
		time.Sleep(24*time.Hour + time.Minute)
		load(t, 0) // an hour, and the day that the clock lost
		time.Sleep(time.Hour)
		load(t, 1)
	})
	load(t, 1)
	load(t, 0)
}
