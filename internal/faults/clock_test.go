package faults

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// Each bubble begins at the same time. A cache that comes from one in which a day has
// passed sees the wall clock jump back, and one that goes to the world outside sees
// it jump ahead by years: results are kept for longer, or asked for anew.
func TestClockJumpsUnderACache(t *testing.T) {
	memory := bins.NewMemoryCache(bins.CacheOptions{TTL: time.Hour})
	requests := 0
	answer := func(req *http.Request) (*http.Response, error) {
		requests++
		var asked struct{ Cards []struct{ Card string } }
		if err := json.NewDecoder(req.Body).Decode(&asked); err != nil {
			return nil, err
		}
		body, err := json.Marshal(map[string]any{"cards": []item{itemOf(asked.Cards[0].Card, items{})}})
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body)))}, nil
	}
	load := func(t *testing.T, most int) {
		t.Helper()
		before := requests
		client, err := bins.NewClient(baseURL, bins.StaticToken("t"), bins.WithInsecureHTTP(), bins.WithHTTPClient(&http.Client{Transport: roundTrip(answer)}))
		if err != nil {
			t.Fatal(err)
		}
		loader, err := bins.NewLoader(client, bins.LoaderOptions{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := loader.Load(ctx, "40000201")
		if err != nil || !isAbout(&r, "40000201") || r.Stale || requests-before != most {
			t.Errorf("%v, %v, %d requests", r, err, requests-before)
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

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
