package bins

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/transport"
)

const (
	// remoteTimeout bounds each call of the caller's cache, and so does remoteShare
	// of what is left until the deadline: a cache that hangs must not be an outage.
	remoteTimeout = 50 * time.Millisecond
	remoteShare   = 10
)

// A remoteCache calls the caller's Cache in a way that it cannot harm: for a short
// time, on a goroutine of its own, and never again before the call before has ended.
// A cache that ignores its context so holds one goroutine at most.
type remoteCache struct {
	cache   Cache
	turn    chan struct{} // holds a value while somebody waits for a call; guards skip
	running atomic.Bool   // a call has not ended, and perhaps nobody waits for it any more
	skip    backoff
}

// A backoff is a time for which something that failed is not tried. It is a second, and
// doubles with each failure up to 30.
type backoff struct {
	length time.Duration
	end    time.Time
}

func (b *backoff) isOver() bool { return !time.Now().Before(b.end) }

func (b *backoff) settle(succeeded bool) {
	const first, longest = time.Second, 30 * time.Second
	if succeeded {
		*b = backoff{}
		return
	}
	b.length = min(max(first, 2*b.length), longest)
	b.end = time.Now().Add(b.length)
}

// newRemoteCache returns nil if there is no cache.
func newRemoteCache(c Cache) *remoteCache {
	if c == nil {
		return nil
	}
	return &remoteCache{cache: c, turn: make(chan struct{}, 1)}
}

// get returns what the cache has, if it has it in time. What Get panics with is
// panicked here, where the caller can recover.
func (r *remoteCache) get(ctx context.Context, keys []string) map[string][]byte {
	return r.call(ctx, func(ctx context.Context) (map[string][]byte, error) { return r.cache.Get(ctx, keys) })
}

// set keeps values, if the cache takes them in time. Nobody waits for it, and so
// nobody is told what Set panics with.
func (r *remoteCache) set(ctx context.Context, values map[string][]byte, ttl time.Duration) {
	defer func() { _ = recover() }()
	r.call(ctx, func(ctx context.Context) (map[string][]byte, error) { return nil, r.cache.Set(ctx, values, ttl) })
}

// call makes a call if the cache is to be asked, and waits for it as long as it may
// take. It returns nothing of a call that has failed.
func (r *remoteCache) call(ctx context.Context, call func(context.Context) (map[string][]byte, error)) map[string][]byte {
	timeout := remoteTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline)/remoteShare)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-limited.Done(): // others keep it busy
		return nil
	}
	if limited.Err() != nil || r.running.Load() || !r.skip.isOver() {
		return nil
	}
	r.running.Store(true)
	succeeded := false
	defer func() {
		if succeeded || ctx.Err() == nil { // and so it is no fault of the caller's
			r.skip.settle(succeeded)
		}
	}()
	values, err := transport.NewFuture(func() (map[string][]byte, error) { return call(limited) },
		func(map[string][]byte, error) { r.running.Store(false) }).Wait(limited)
	if succeeded = err == nil; !succeeded {
		return nil
	}
	return values
}

// remoteValue is what the caller's cache keeps of a result; nil: nothing. It holds no card
// number, whether the service repeats the one that a token stands for or states one
// somewhere else.
func remoteValue(r *Result) []byte {
	if !r.hasCard() || r.Error != "" {
		return nil
	}
	kept := r.clone()
	kept.forgetCard(kept.BIN)
	if mayBeCardNumber(kept.BIN) {
		kept.BIN = ""
	}
	value, err := json.Marshal(kept)
	// The bounds of ranges look like card numbers, and so does a phone number.
	card := kept.Data.Card
	card.BINMin, card.BINMax, card.Bank.Phone = "", "", ""
	for i := range card.AdditionalCardBrands {
		card.AdditionalCardBrands[i].BINMin, card.AdditionalCardBrands[i].BINMax = "", ""
	}
	rest, _ := json.Marshal(kept)
	// In the service's own JSON, an escaped digit would not be seen.
	if err != nil || mask.HoldsCardNumber(string(rest)) || bytes.Contains(card.NetworkFees, []byte(`\u`)) {
		return nil
	}
	return value
}
