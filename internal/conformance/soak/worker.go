package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

const jobID = "42"

// jobContent is what downloads must bring, byte for byte.
var jobContent = sync.OnceValue(func() []byte {
	return bytes.Repeat([]byte("4111111111111111,4242424242424242,2031-07,number_changed\n"), 5000)
})

type clients struct {
	bins    *bins.Client
	loader  *bins.Loader
	refunds *refunds.Client
	updater *updater.Client
}

func newClients(url string) (*clients, error) {
	c := &clients{}
	var errs [4]error
	c.bins, errs[0] = bins.NewClient(url, bins.StaticToken("key"))
	c.loader, errs[1] = bins.NewLoader(c.bins, bins.LoaderOptions{Memory: bins.NewMemoryCache(bins.CacheOptions{Entries: 1000})})
	c.refunds, errs[2] = refunds.NewClient(url)
	c.updater, errs[3] = updater.NewClient(url, "merchant", updater.StaticToken("token"))
	return c, errors.Join(errs[:]...)
}

// A worker is one goroutine's traffic.
type worker struct {
	name    string
	clients *clients
	random  *rand.Rand
	ledger  *ledger
	report  *report
	calls   int
}

// work sends traffic of one kind until the round ends.
func (w *worker) work(ctx context.Context, place int) {
	kinds := []struct {
		name string
		call func(context.Context) error
	}{
		{"lookup", w.lookup}, {"submit", w.submit}, {"load", w.load}, {"submit", w.submit}, {"lookup all", w.lookupAll},
		{"lookup", w.lookup}, {"submit", w.submit}, {"load", w.load}, {"lookup", w.lookup}, {"download", w.download},
	}
	kind := kinds[place%len(kinds)]
	for ; ctx.Err() == nil; w.calls++ {
		// What is on the wire when the round ends may finish, but not for ever.
		patience := 20 * time.Second
		if w.random.IntN(50) == 0 {
			patience = time.Duration(w.random.Int64N(int64(20 * time.Millisecond)))
		}
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		began := time.Now()
		err := kind.call(call)
		took := time.Since(began)
		cancel()
		if took > patience+5*time.Second {
			w.ledger.wrong("%s ended %v after its deadline", kind.name, took-patience)
		}
		w.report.add(kind.name, took, err)
	}
}

func (w *worker) card() string { return fmt.Sprintf("4%08d", w.random.IntN(50_000)) }

// check tells whether an answer is this card's, by its range.
func (w *worker) check(card string, r *bins.Result) {
	c, err := r.Card()
	if err != nil {
		w.ledger.wrong("an item without a card for a known one")
		return
	}
	prefix := sandbox.SyntheticRange(card)
	if c.BINMin != prefix+strings.Repeat("0", 19-len(prefix)) {
		w.ledger.wrong("the answer of another card")
	}
}

func (w *worker) lookup(ctx context.Context) error {
	cards := make([]string, 1+w.random.IntN(bins.MaxCards))
	for i := range cards {
		cards[i] = w.card()
	}
	resp, err := w.clients.bins.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(cards...)})
	if err != nil {
		w.typed(errors.AsType[*bins.Error](err))
		return err
	}
	if len(resp.Cards) != len(cards) {
		w.ledger.wrong("%d items for %d cards", len(resp.Cards), len(cards))
		return nil
	}
	for i := range cards {
		w.check(cards[i], &resp.Cards[i])
	}
	return nil
}

func (w *worker) load(ctx context.Context) error {
	card := w.card()
	result, err := w.clients.loader.Load(ctx, card)
	if err == nil {
		w.check(card, &result)
	}
	return err
}

func (w *worker) lookupAll(ctx context.Context) error {
	cards := make([]string, 500)
	for i := range cards {
		cards[i] = w.card()
	}
	done := 0
	var failed error
	for r, err := range w.clients.bins.LookupAll(ctx, func(yield func(string) bool) {
		for _, card := range cards {
			if !yield(card) {
				return
			}
		}
	}, bins.BulkOptions{}) {
		if err != nil {
			failed = err
			w.typed(errors.AsType[*bins.Error](err))
			if r.Index < 0 {
				return err
			}
		}
		if r.Index != done {
			w.ledger.wrong("result %d in place of %d", r.Index, done)
		}
		if err == nil {
			w.check(cards[r.Index], &r.Result)
		}
		done++
	}
	if done != len(cards) {
		w.ledger.wrong("%d results for %d cards", done, len(cards))
	}
	return failed
}

func (w *worker) submit(ctx context.Context) error {
	id := fmt.Sprintf("re-%s-%d", w.name, w.calls)
	_, err := w.clients.refunds.Submit(ctx, "acct", &refunds.Refund{RefundID: id, Amount: new(int64(w.calls))})
	outcome := refunds.OutcomeAccepted
	if err != nil {
		e, ok := errors.AsType[*refunds.OutcomeError](err)
		w.typed(e, ok)
		if ok {
			outcome = e.Outcome
		}
	}
	w.ledger.settle(id, outcome)
	return err
}

func (w *worker) download(ctx context.Context) error {
	d, err := w.clients.updater.Download(ctx, jobID)
	if err != nil {
		w.typed(errors.AsType[*updater.Error](err))
		return err
	}
	defer d.Close()
	content, err := io.ReadAll(d)
	if err == nil && !bytes.Equal(content, jobContent()) {
		w.ledger.wrong("a download of other content")
	}
	return err
}

func (w *worker) typed(_ error, ok bool) {
	if !ok {
		w.ledger.wrong("an error without its type")
	}
}
