package bins_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
)

// unsendable are cards that no request could carry.
var unsendable = []string{"\xff411111", strings.Repeat("4", 4<<10+1)}

func TestOneBadCardFailsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		l := loader(t, s, bins.LoaderOptions{})
		cards := append([]string{"511111", strings.Repeat("4", 4<<10)}, unsendable...)
		var callers sync.WaitGroup
		for i, card := range cards {
			callers.Go(func() {
				_, err := l.Load(t.Context(), card)
				e, typed := errors.AsType[*bins.Error](err)
				if i < 2 && err != nil || i >= 2 && (!errors.Is(err, bins.ErrInvalidArgument) || !typed || e.Operation != "load") {
					t.Errorf("card %d: %v", i, err)
				}
			})
		}
		callers.Wait()
		results := 0
		for r, err := range s.client(t).LookupAll(t.Context(), slices.Values(cards), bins.BulkOptions{}) {
			if r.Index != results || (r.Index >= 2) != errors.Is(err, bins.ErrInvalidArgument) || r.Index >= 2 && r.Reused {
				t.Errorf("result %d is %v, %v", results, r, err)
			}
			results++
		}
		if results != len(cards) {
			t.Errorf("%d results", results)
		}
	})
}

func TestOptionsOutOfRange(t *testing.T) {
	c := (&service{}).client(t)
	for _, o := range []bins.BulkOptions{{Concurrency: -1}, {Concurrency: math.MaxInt}, {PrefixLength: -1}, {PrefixLength: 12}, {PrefixLength: math.MaxInt}} {
		for r, err := range c.LookupAll(t.Context(), numbered(3), o) {
			if r.Index != -1 || !errors.Is(err, bins.ErrInvalidArgument) {
				t.Errorf("%+v: %v, %v", o, r, err)
			}
		}
	}
	if _, err := bins.NewLoader(c, bins.LoaderOptions{PrefixLength: 12}); !errors.Is(err, bins.ErrInvalidArgument) {
		t.Error(err)
	}
}

func TestPrefixLengthKnowsDigitsOfEveryScript(t *testing.T) {
	var sent []string
	s := &service{answer: func(card string) (map[string]any, bool) { sent = append(sent, card); return nil, false }}
	cards := []string{"４１１１１１１１１１１１１１１１", "٤١١١١١١١١١١١١١١١", "4111 1111-1111 1111"}
	for range s.client(t).LookupAll(t.Context(), slices.Values(cards), bins.BulkOptions{PrefixLength: 8}) {
	}
	if want := []string{"４１１１１１１１", "٤١١١١١١١", "41111111"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q", sent)
	}
}

func TestReusedResultIsNoOtherCards(t *testing.T) {
	s := &service{answer: ranged(8)}
	cards := []string{"4111111111111111", "4111111122222222", "4111111111111111"}
	for r, err := range s.client(t).LookupAll(t.Context(), slices.Values(cards), bins.BulkOptions{PrefixLength: 8}) {
		card, _ := r.Result.Card()
		if err != nil || card == nil || r.Reused != (r.Index > 0) {
			t.Fatal(r, err)
		}
		if r.Reused && (!card.PANOrToken.IsZero() || card.CorrelationID != "") {
			t.Errorf("result %d has what is another card's", r.Index)
		}
	}
}

func TestBulkResultLogsMasked(t *testing.T) {
	const number = "4111111111111111"
	for r := range (&service{answer: ranged(8)}).client(t).LookupAll(t.Context(), slices.Values([]string{number}), bins.BulkOptions{}) {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "result", r)
		if strings.Contains(log.String(), number) || !strings.Contains(log.String(), "411111******1111") {
			t.Error(&log)
		}
	}
}

func TestLoaderTellsOfAPauseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := binstest.NewServer(t)
		fake.Script(binstest.Fault{Status: 429, RetryAfter: 20 * time.Second})
		l, err := bins.NewLoader(fake.Client(bins.WithMaxRetries(0)), bins.LoaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Load(t.Context(), "411111"); !errors.Is(err, bins.ErrRateLimited) {
			t.Fatal(err)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		_, err = l.Load(ctx, "422222")
		e, _ := errors.AsType[*bins.Error](err)
		if !errors.Is(err, bins.ErrLocalLimit) || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 0 || e.RetryAfter < 19*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if _, err := l.Load(t.Context(), "422222"); err != nil {
			t.Errorf("a caller with time: %v", err)
		}
	})
}

// A caller that waits already when the service asks for a pause beyond its deadline is
// told at once, as Lookup tells it, and one that has the time gets its result.
func TestLoaderTellsThoseWhoWaitOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := binstest.NewServer(t)
		fake.Script(binstest.Fault{Status: 503}, binstest.Fault{Status: 429, RetryAfter: 20 * time.Second})
		l, err := bins.NewLoader(fake.Client(), bins.LoaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var callers sync.WaitGroup
		callers.Go(func() {
			began := time.Now()
			_, err := loadWithin(t, l, 10*time.Second, "411111")
			e, _ := errors.AsType[*bins.Error](err)
			if !errors.Is(err, bins.ErrRateLimited) || !errors.Is(err, bins.ErrLocalLimit) || time.Since(began) > time.Second ||
				e.StatusCode != 429 || e.Condition() != "rate_limited" || e.RetryAfter != 20*time.Second || e.Attempts != 2 {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
		callers.Go(func() {
			if _, err := loadWithin(t, l, 29*time.Second, "411111"); err != nil {
				t.Errorf("a caller with time: %v", err)
			}
		})
		callers.Wait()
	})
}
