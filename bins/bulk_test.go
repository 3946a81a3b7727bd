package bins_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// A service answers lookups without a network. Its zero value answers every
// card with the brand that says which card it was.
type service struct {
	latency  func() time.Duration
	fail     func(request int64) int                  // a status; 0: none
	answer   func(card string) (map[string]any, bool) // false: left out
	reorder  bool
	requests atomic.Int64
	cards    atomic.Int64
	inFlight atomic.Int64
	most     atomic.Int64
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	n := s.requests.Add(1)
	flying := s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	for most := s.most.Load(); flying > most && !s.most.CompareAndSwap(most, flying); most = s.most.Load() {
	}
	var asked bins.LookupRequest
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	r.Body.Close()
	if s.latency != nil {
		select {
		case <-time.After(s.latency()):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	status, body := http.StatusOK, `{}`
	if s.fail != nil {
		status = max(status, s.fail(n))
	}
	if status == http.StatusOK {
		s.cards.Add(int64(len(asked.Cards)))
		body = s.body(asked.Cards)
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

func (s *service) body(cards []bins.LookupCard) string {
	items := []map[string]any{}
	for _, c := range cards {
		card := c.Card.Reveal()
		item, ok := map[string]any{"bin": card, "data": map[string]any{"card": map[string]any{"card_brand": "of " + card}}}, true
		if s.answer != nil {
			item, ok = s.answer(card)
		}
		if ok {
			items = append(items, item)
		}
	}
	if s.reorder {
		rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	}
	body, err := json.Marshal(map[string]any{"cards": items})
	if err != nil {
		panic(err)
	}
	return string(body)
}

func (s *service) client(t testing.TB, opts ...bins.Option) *bins.Client {
	t.Helper()
	c, err := bins.NewClient("https://bin.example", bins.StaticToken("k"),
		append([]bins.Option{bins.WithHTTPClient(&http.Client{Transport: s}), bins.WithRetryWait(0, 0)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func numbered(n int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(fmt.Sprintf("4%07d", i)) {
				return
			}
		}
	}
}

func TestLookupAllAnswersEveryInputInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{reorder: true, latency: func() time.Duration { return rand.N(100 * time.Millisecond) }}
		var last bins.BulkProgress
		next := 0
		for r, err := range s.client(t).LookupAll(t.Context(), func(yield func(string) bool) {
			for i := range 20_000 {
				if !yield(fmt.Sprintf("4%07d", i*7919%3000)) {
					return
				}
			}
		}, bins.BulkOptions{Concurrency: 8, Progress: func(p bins.BulkProgress) { last = p }}) {
			want := fmt.Sprintf("4%07d", next*7919%3000)
			if err != nil || r.Index != next || r.Input.Reveal() != want || r.Result.Data.Card.CardBrand != "of "+want {
				t.Fatalf("result %d = %v, %v; want %s", next, r.Result.Data.Card, err, want)
			}
			next++
		}
		if next != 20_000 || s.requests.Load() != 60 || s.cards.Load() != 3000 {
			t.Errorf("%d results by %d requests of %d cards", next, s.requests.Load(), s.cards.Load())
		}
		if s.most.Load() != 8 {
			t.Errorf("%d requests in flight, want 8", s.most.Load())
		}
		if want := (bins.BulkProgress{Done: 20_000, Distinct: 3000, Cached: 17_000, Requests: 60}); last != want {
			t.Errorf("progress = %+v, want %+v", last, want)
		}
	})
}

// TestLookupAllUnordered: a request that takes its time holds up no result but its
// own, and more inputs than could wait behind it have theirs.
func TestLookupAllUnordered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first atomic.Bool
		s := &service{latency: func() time.Duration {
			if first.CompareAndSwap(false, true) {
				return 9 * time.Second
			}
			return time.Millisecond
		}}
		const n = 60_000
		began, results, late := time.Now(), 0, 0
		for r, err := range s.client(t).LookupAll(t.Context(), numbered(n), bins.BulkOptions{Concurrency: 4, Unordered: true}) {
			if want := fmt.Sprintf("4%07d", r.Index); err != nil || r.Input.Reveal() != want || r.Result.Data.Card.CardBrand != "of "+want {
				t.Fatal(r.Index, r.Input, r.Result.Data.Card.CardBrand, err)
			}
			if results++; time.Since(began) >= 9*time.Second {
				late++
			}
		}
		if results != n || late != bins.MaxCards {
			t.Errorf("%d results, %d of them late", results, late)
		}
	})
}

// TestLookupAllIsPrompt: an answer does not wait for the next request, whatever
// comes out of the cache meanwhile.
func TestLookupAllIsPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func() time.Duration { return time.Millisecond }}
		cache := bins.NewMemoryCache(bins.CacheOptions{})
		const known = "499999"
		inputs := func(yield func(string) bool) {
			ok := true
			for i := 0; i < 1000 && ok; i++ {
				if ok = i >= bins.MaxCards && yield(known) || i < bins.MaxCards && yield(fmt.Sprintf("4%07d", i)); i > bins.MaxCards {
					time.Sleep(time.Millisecond)
				}
			}
		}
		client := s.client(t)
		for range client.LookupAll(t.Context(), slices.Values([]string{known}), bins.BulkOptions{Memory: cache}) {
		}
		place := 0
		for r, err := range client.LookupAll(t.Context(), inputs, bins.BulkOptions{Memory: cache, Unordered: true}) {
			if place++; err != nil || r.Index < bins.MaxCards && place > bins.MaxCards+10 {
				t.Fatalf("result %d is the %dth, %v", r.Index, place, err)
			}
		}
	})
}

// An answer that cannot be decoded is asked for again, and the requests in flight
// stay as many as the caller allowed.
func TestLookupAllRepeatsWithinItsConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{
			latency: func() time.Duration { return rand.N(100 * time.Millisecond) },
			answer:  func(string) (map[string]any, bool) { return map[string]any{"bin": 1}, true },
		}
		for range s.client(t).LookupAll(t.Context(), numbered(2000), bins.BulkOptions{Concurrency: 3}) {
		}
		if s.requests.Load() != 80 || s.most.Load() != 3 {
			t.Errorf("%d requests, %d of them in flight", s.requests.Load(), s.most.Load())
		}
	})
}

func TestLookupAllGoesOnAfterAFailedRequest(t *testing.T) {
	s := &service{fail: func(n int64) int {
		if n == 1 {
			return http.StatusBadRequest
		}
		return 0
	}}
	failed, answered := 0, 0
	for r, err := range s.client(t).LookupAll(t.Context(), numbered(500), bins.BulkOptions{Concurrency: 1}) {
		switch {
		case errors.Is(err, bins.ErrBadRequest) && r.Index >= 0:
			failed++
		case err == nil:
			answered++
		default:
			t.Fatalf("result %d: %v", r.Index, err)
		}
	}
	if failed != bins.MaxCards || answered != 450 {
		t.Errorf("%d failed and %d answered", failed, answered)
	}
}

func TestLookupAllEndsWhereEveryRequestFails(t *testing.T) {
	for _, status := range []int{401, 403, 404, 302} {
		s := &service{fail: func(n int64) int {
			if n > 2 {
				return status
			}
			return 0
		}}
		results := 0
		var end error
		for r, err := range s.client(t).LookupAll(t.Context(), numbered(10_000), bins.BulkOptions{Concurrency: 1}) {
			if r.Index < 0 {
				end = err
				continue
			}
			if end != nil || err != nil {
				t.Errorf("status %d: result %d after the end, or with %v", status, r.Index, err)
			}
			results++
		}
		if failure, ok := errors.AsType[*bins.Error](end); !ok || failure.StatusCode != status || results != 100 {
			t.Errorf("status %d: ended with %v after %d results", status, end, results)
		}
	}
}

func TestLookupAllStopsWithTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func() time.Duration { return time.Hour }}
		pulled := 0
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Minute, cancel)
		for r, err := range s.client(t, bins.WithAttemptTimeout(2*time.Hour)).LookupAll(ctx, func(yield func(string) bool) {
			for card := range numbered(1 << 30) {
				if pulled++; !yield(card) {
					return
				}
			}
		}, bins.BulkOptions{}) {
			if r.Index != -1 || !errors.Is(err, context.Canceled) {
				t.Errorf("result %d: %v, want the end by cancellation", r.Index, err)
			}
		}
		if pulled > 5000 {
			t.Errorf("%d inputs were pulled while no result was taken", pulled)
		}
		if s.inFlight.Load() != 0 {
			t.Error("requests are left")
		}
		s.latency = nil
		for range s.client(t).LookupAll(t.Context(), numbered(1000), bins.BulkOptions{}) {
			break
		}
	})
}

func TestLookupAllReportsWhatIsMissing(t *testing.T) {
	s := &service{answer: func(card string) (map[string]any, bool) {
		return map[string]any{"bin": card}, card != "40000003"
	}}
	var missing []string
	for r, err := range s.client(t).LookupAll(t.Context(), numbered(10), bins.BulkOptions{}) {
		if errors.Is(err, bins.ErrMissing) {
			if err.Error() != "bins: lookup all: the response holds no item for this card" {
				t.Error(err)
			}
			missing = append(missing, r.Input.Reveal())
		} else if err != nil || r.Result.BIN != r.Input.Reveal() {
			t.Errorf("result %d = %v, %v", r.Index, r.Result, err)
		}
	}
	if !slices.Equal(missing, []string{"40000003"}) {
		t.Errorf("missing = %v", missing)
	}
}

func TestLookupAllRefusesUnusableClients(t *testing.T) {
	var zero *bins.Client
	for _, c := range []*bins.Client{zero, {}} {
		for r, err := range c.LookupAll(t.Context(), numbered(1), bins.BulkOptions{}) {
			if r.Index != -1 || !errors.Is(err, bins.ErrInvalidArgument) {
				t.Errorf("result %d, %v", r.Index, err)
			}
		}
	}
}
