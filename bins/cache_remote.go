package bins

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/mask"
)

const (
	// remoteTimeout and remoteShare (of the time left until the deadline) bound each call of
	// the caller's cache: a cache that hangs must not cause an outage.
	remoteTimeout = 50 * time.Millisecond
	remoteShare   = 10
	// So many calls in a row that got less, and no answer, are a failure, too.
	mostHasty = 5
)

// A remoteCache calls the caller's Cache safely: with a timeout, on its own goroutine, and
// one call at a time. A cache that ignores its context holds at most one goroutine.
type remoteCache struct {
	cache   Cache
	turn    chan struct{} // full while somebody waits for a call; guards skip and hasty
	running atomic.Bool   // a call is running, perhaps after its caller left
	skip    backoff
	hasty   int // calls in a row that got less time than most, and no answer
}

// A backoff pauses calls after a failure. It starts at a second, and doubles with each
// further failure up to 30.
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

// get returns the values that the cache has, if it answers in time. A panic of Get is
// repeated here, where the caller can recover.
func (r *remoteCache) get(ctx context.Context, keys []string) map[string][]byte {
	return r.call(ctx, true, func(ctx context.Context) (map[string][]byte, error) { return r.cache.Get(ctx, keys) })
}

// set stores values, if the cache answers in time. Nobody waits for it, so a panic of Set is
// dropped.
func (r *remoteCache) set(ctx context.Context, values map[string][]byte, ttl time.Duration) {
	defer func() { _ = recover() }()
	r.call(ctx, false, func(ctx context.Context) (map[string][]byte, error) { return nil, r.cache.Set(ctx, values, ttl) })
}

// call calls the cache unless a backoff runs, and waits until the timeout. It returns nothing
// after a failure. A cache that stores values does not always find them: only a call that reads shows
// that it works.
func (r *remoteCache) call(ctx context.Context, reads bool, call func(context.Context) (map[string][]byte, error)) map[string][]byte {
	timeout := remoteTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline)/remoteShare)
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-time.After(timeout): // others keep the cache busy
		return nil
	case <-ctx.Done():
		return nil
	}
	if ctx.Err() != nil || r.running.Load() || !r.skip.isOver() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r.running.Store(true)
	succeeded := false
	defer func() {
		late := !succeeded && limited.Err() != nil
		switch {
		case succeeded && !reads, late && ctx.Err() != nil: // that shows nothing, or its callers have left
			return
		case late && timeout < remoteTimeout:
			if r.hasty++; r.hasty < mostHasty { // perhaps only these callers have no time
				return
			}
		}
		r.hasty = 0
		r.skip.settle(succeeded)
	}()
	values, err := await.NewFuture(func() (map[string][]byte, error) { return call(limited) },
		func(map[string][]byte, error) { r.running.Store(false) }).Wait(limited)
	if succeeded = err == nil; !succeeded {
		return nil
	}
	return values
}

// newValue returns the value of a result for the caller's cache, or nil if it must not be
// stored. It holds no full card number, neither that of a token nor one in another field. It
// includes the key and the time, so that a value under another key or past its TTL is not
// used:
//
//	checksum of all that follows and the key, time in seconds since 1970, JSON
func newValue(key string, r *Result, sent time.Time) []byte {
	kept := r.clone()
	kept.forgetCard(kept.BIN)
	if mayBeCardNumber(kept.BIN) {
		kept.BIN = ""
	}
	value, err := json.Marshal(remoteResult{kept, kept.Unread})
	// Bounds of ranges and a phone number look like card numbers, so leave them out of the
	// check.
	card := kept.Data.Card
	card.BINMin, card.BINMax, card.Bank.Phone = "", "", ""
	for i := range card.AdditionalCardBrands {
		card.AdditionalCardBrands[i].BINMin, card.AdditionalCardBrands[i].BINMax = "", ""
	}
	rest, _ := json.Marshal(kept)
	// NetworkFees is the service's own JSON. The check would miss an escaped digit in it.
	if err != nil || mask.HoldsCardNumber(string(rest)) || bytes.Contains(card.NetworkFees, []byte(`\u`)) {
		return nil
	}
	content := fmt.Sprintf("%d %s", sent.Unix(), value)
	return []byte(checksum(key, content) + " " + content)
}

// readValue reads a value that newValue made for the same key.
func readValue(key string, value []byte) (r Result, sent time.Time, ok bool) {
	sum, content, _ := strings.Cut(string(value), " ")
	if sum != checksum(key, content) {
		return r, sent, false
	}
	seconds, item, _ := strings.Cut(content, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if sent = time.Unix(unix, 0); sent.After(time.Now()) { // another machine's clock is ahead
		sent = time.Now()
	}
	var kept remoteResult
	if err != nil || json.Unmarshal([]byte(item), &kept) != nil {
		return r, sent, false
	}
	r = kept.Result
	r.Unread = kept.Unread
	return r, sent, r.isKnown()
}

// A remoteResult is the JSON in a value.
type remoteResult struct {
	Result
	Unread []string `json:"unread,omitempty"`
}

// checksum uses letters only, because sixteen digits would look like a card number.
func checksum(key, content string) string {
	hash := sha256.Sum256([]byte(key + "\n" + content))
	sum := hash[:16]
	for i := range sum {
		sum[i] = 'a' + sum[i]%16
	}
	return string(sum)
}
