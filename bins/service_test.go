package bins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// A service answers lookups without a network. The zero value gives every card a brand that
// names the card. It calls its functions under a lock. Once it has a client, they and what they
// read change only in change.
type service struct {
	latency time.Duration
	delay   func() time.Duration                     // after the latency
	status  int                                      // of each request; 0: it works
	fail    func(n int64) int                        // the same, by the number of the request
	refuse  func(body string) int                    // the same, by what it asks for
	header  http.Header                              // of a failure
	answer  func(card string) (map[string]any, bool) // false: no item for this card
	reorder bool

	mu       sync.Mutex
	requests atomic.Int64
	cards    atomic.Int64
	inFlight atomic.Int64
	most     atomic.Int64 // in flight
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, err
	}
	status, latency := s.receive(string(body))
	defer s.inFlight.Add(-1)
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if status != http.StatusOK {
		return &http.Response{StatusCode: status, Header: s.header.Clone(), Body: http.NoBody}, nil
	}
	var asked struct{ Cards []struct{ Card string } }
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	s.cards.Add(int64(len(asked.Cards)))
	items := []string{}
	for _, c := range asked.Cards {
		if item := s.item(c.Card); item != "" {
			items = append(items, item)
		}
	}
	if s.reorder {
		rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	}
	text := `{"cards":[` + strings.Join(items, ",") + `]}`
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text))}, nil
}

// change changes what the service does, for what arrives from now on.
func (s *service) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// receive counts a request, and decides what becomes of it.
func (s *service) receive(body string) (status int, latency time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.requests.Add(1)
	s.most.Store(max(s.most.Load(), s.inFlight.Add(1)))
	status = max(http.StatusOK, s.status)
	if s.fail != nil {
		status = max(status, s.fail(n))
	}
	if s.refuse != nil {
		status = max(status, s.refuse(body))
	}
	latency = s.latency
	if s.delay != nil {
		latency += s.delay()
	}
	return status, latency
}

func (s *service) item(card string) string {
	if s.answer == nil {
		return fmt.Sprintf(`{"bin":%q,"data":{"card":{"card_brand":%q}}}`, card, "of "+card) // as branded, only quicker
	}
	item, ok := s.answer(card)
	if !ok {
		return ""
	}
	text, err := json.Marshal(item)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// atMost refuses what exceeds so many in flight.
func atMost(n int64, status int) func(*service) int {
	return func(s *service) int {
		if s.inFlight.Load() > n {
			return status
		}
		return 0
	}
}

// perSecond refuses what exceeds a rate, without a burst.
func perSecond(n int) func(*service) int {
	var next time.Time
	return func(*service) int {
		if now := time.Now(); now.Before(next) {
			return http.StatusTooManyRequests
		} else {
			next = now.Add(time.Second / time.Duration(n))
		}
		return 0
	}
}

// branded is an item with a card of a brand.
func branded(card, brand string) map[string]any {
	return map[string]any{"bin": card, "data": map[string]any{"card": map[string]any{"card_brand": brand}}}
}

// A retry waits a nanosecond: timers that fire at once can crash the race detector in a bubble,
// golang/go#78156.
func (s *service) client(t testing.TB, opts ...bins.Option) *bins.Client {
	t.Helper()
	return clientOver(t, s, append([]bins.Option{bins.WithRetryWait(1, 1)}, opts...)...)
}

func clientOver(t testing.TB, network http.RoundTripper, opts ...bins.Option) *bins.Client {
	t.Helper()
	client, err := bins.NewClient("https://bin.example", bins.StaticToken("k"), append([]bins.Option{bins.WithHTTPClient(&http.Client{Transport: network})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type limiterFunc func(context.Context) error

func (f limiterFunc) Wait(ctx context.Context) error { return f(ctx) }

// numbered yields n different BINs.
func numbered(n int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(fmt.Sprintf("4%07d", i)) {
				return
			}
		}
	}
}

// brand is the brand of a result's card, if it has one.
func brand(r bins.Result) string {
	if card, err := r.Card(); err == nil {
		return card.CardBrand
	}
	return ""
}
