package bins

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// remoteTimeout and remoteShare (of the time left until the deadline) bound each call of
	// the caller's cache: a cache that hangs must not cause an outage.
	remoteTimeout = 50 * time.Millisecond
	remoteShare   = 10
	// After so many failures in a row the cache is skipped. One is too few: perhaps the caller had
	// little time.
	mostFailures = 5
	firstSkip    = time.Second
	longestSkip  = 30 * time.Second
)

// A remoteCache calls the caller's Cache safely: with a timeout, on its own goroutine, and
// one call at a time. A cache that ignores its context holds at most one goroutine.
type remoteCache struct {
	cache    Cache
	turn     chan struct{} // full while somebody waits for a call; guards failures and skipped
	calls    sync.WaitGroup
	running  atomic.Bool // a call is running, perhaps after its caller left
	failures int         // in a row
	skipped  time.Time   // until then
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

// call calls the cache unless it is skipped, and waits until the timeout. It returns nothing
// after a failure.
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
	if ctx.Err() != nil || r.running.Load() || time.Now().Before(r.skipped) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	succeeded := false
	defer func() { r.settle(succeeded, reads) }()
	type answer struct {
		values   map[string][]byte
		err      error
		panicked any
	}
	answers := make(chan answer, 1)
	r.running.Store(true)
	r.calls.Go(func() {
		var a answer
		defer func() {
			a.panicked = recover()
			r.running.Store(false)
			answers <- a
		}()
		a.values, a.err = call(limited)
	})
	select {
	case a := <-answers:
		if a.panicked != nil {
			panic(a.panicked)
		}
		if succeeded = a.err == nil; succeeded {
			return a.values
		}
	case <-limited.Done():
	}
	return nil
}

// wait waits for the end of calls that were left.
func (r *remoteCache) wait() {
	if r != nil {
		r.calls.Wait()
	}
}

// settle counts failures. A cache that stores values does not always find them: only a call that
// reads shows that it works.
func (r *remoteCache) settle(succeeded, reads bool) {
	switch {
	case !succeeded:
		r.failures++
		if n := r.failures - mostFailures; n >= 0 {
			r.skipped = time.Now().Add(min(firstSkip<<min(n, 5), longestSkip))
		}
	case reads:
		r.failures = 0
	}
}

// newValue returns the value of a result in memory for the caller's cache. It includes the key and
// the time, so that a value under another key or past its TTL is not used:
//
//	checksum of all that follows and the key, time in seconds since 1970, JSON
func newValue(key string, r *Result, sent time.Time) []byte {
	item, _ := json.Marshal(remoteResult{*r, r.Unread}) // networkfees, which could be no JSON, is what was decoded
	content := fmt.Sprintf("%d %s", sent.Unix(), item)
	return []byte(checksum(key, content) + " " + content)
}

// readValue reads a value that newValue made for the same key.
func readValue(key string, value []byte) (r Result, sent time.Time, ok bool) {
	sum, content, _ := strings.Cut(string(value), " ")
	seconds, item, _ := strings.Cut(content, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || sum != checksum(key, content) {
		return r, sent, false
	}
	if sent = time.Unix(unix, 0); sent.After(time.Now()) { // another machine's clock is ahead
		sent = time.Now()
	}
	var kept remoteResult
	err = json.Unmarshal([]byte(item), &kept)
	r = kept.Result
	if r.Unread = kept.Unread; r.hasCard() && string(r.Data.Card.NetworkFees) == "null" {
		r.Data.Card.NetworkFees = nil
	}
	return r, sent, err == nil && r.isKnown()
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
