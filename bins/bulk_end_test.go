package bins_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/fault"
)

// What every further request would meet ends the lookup at once: the inputs that were taken
// are yielded, the rest is not taken.
func TestLookupAllEndsWhereEveryRequestFails(t *testing.T) {
	after := func(working int64, status int) *service {
		return &service{fail: func(n int64) int {
			if n > working {
				return status
			}
			return 0
		}}
	}
	var tokens atomic.Int64
	badToken := bins.TokenFunc(func(context.Context) (string, error) {
		if tokens.Add(1) > 2 {
			return "bad\ntoken", nil
		}
		return "k", nil
	})
	var requests atomic.Int64
	works := &service{}
	expires := transportFunc(func(r *http.Request) (*http.Response, error) {
		if requests.Add(1) > 2 {
			return nil, &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}
		}
		return works.RoundTrip(r)
	})
	for name, test := range map[string]struct {
		network http.RoundTripper
		option  bins.Option
		results int
		want    error
	}{
		"401":                        {after(2, 401), bins.WithMaxRetries(3), 100, bins.ErrUnauthorized},
		"403":                        {after(2, 403), bins.WithMaxRetries(3), 100, bins.ErrForbidden},
		"404":                        {after(2, 404), bins.WithMaxRetries(3), 100, bins.ErrNotFound},
		"a redirect":                 {after(2, 302), bins.WithMaxRetries(3), 100, fault.ErrRedirect},
		"an expired certificate":     {expires, bins.WithMaxRetries(3), 100, bins.ErrNoResponse},
		"an unusable token":          {&service{}, bins.WithTokenSource(badToken), 100, bins.ErrCredential},
		"a limit of nothing":         {&service{}, bins.WithLimiter(rate.NewLimiter(10, 0)), 0, bins.ErrLocalLimit},
		"a limit beyond the context": {&service{}, bins.WithRateLimit(1, 1), 550, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
			defer cancel()
			client := clientOver(t, test.network, test.option)
			began, results, suspended, taken := time.Now(), 0, 0, 0
			var end error
			for r, err := range client.LookupAll(ctx, func(yield func(string) bool) {
				for card := range numbered(10_000) {
					if taken++; !yield(card) {
						return
					}
				}
			}, bins.BulkOptions{Concurrency: 1}) {
				switch {
				case end != nil:
					t.Errorf("%s: a result after the end", name)
				case err != nil:
					end = err
				case r.Err == nil && suspended == 0:
					results++
				case errors.Is(r.Err, bins.ErrSuspended) && errors.Is(r.Err, test.want):
					suspended++
				default:
					t.Errorf("%s: result %d: %v", name, r.Index, r.Err)
				}
			}
			if !errors.Is(end, test.want) || errors.Is(end, bins.ErrSuspended) || results != test.results || results+suspended != taken || suspended > 200 {
				t.Errorf("%s: ended with %v after %d results and %d suspended of %d taken", name, end, results, suspended, taken)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s: ended after %v", name, took)
			}
		})
	}
}

// A limit beyond the deadline ends the lookup, but not the requests in flight, nor those that come
// before the deadline.
func TestLookupAllLetsRequestsFinishAtALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		s := &service{latency: func() time.Duration { return 400 * time.Millisecond }}
		results, suspended := 0, 0
		var end error
		for r, err := range s.client(t, bins.WithRateLimit(1, 1)).LookupAll(ctx, numbered(1000), bins.BulkOptions{Concurrency: 4}) {
			switch {
			case err != nil:
				end = err
			case r.Err == nil:
				results++
			case errors.Is(r.Err, bins.ErrSuspended) && errors.Is(r.Err, bins.ErrLocalLimit):
				suspended++
			default:
				t.Fatal(r)
			}
		}
		if !errors.Is(end, bins.ErrLocalLimit) || results != 3*bins.MaxCards || suspended == 0 {
			t.Errorf("ended with %v after %d results and %d suspended", end, results, suspended)
		}
	})
}

// A service that refuses its first eight requests ends the lookup, and none of its cards has a
// result: a lookup that goes on has to begin with them. What was refused before the first result is
// sent again. Later, or with fewer requests in all, a refusal fails the cards of its request alone.
func TestLookupAllEndsIfEverythingIsRefused(t *testing.T) {
	page := transportFunc(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader("<html>"))}, nil
	})
	refuses := func(status int, first, last int64) *service {
		return &service{fail: func(n int64) int {
			if first <= n && n <= last {
				return status
			}
			return 0
		}}
	}
	outage := refuses(400, 1, math.MaxInt64)
	refusal := outage.fail
	outage.fail = func(n int64) int {
		if n == 3 {
			return 503
		}
		return refusal(n)
	}
	var requests atomic.Int64
	slowResults := transportFunc(func(r *http.Request) (*http.Response, error) {
		if requests.Add(1)%3 > 0 {
			return &http.Response{StatusCode: 400, Header: http.Header{}, Body: http.NoBody}, nil
		}
		time.Sleep(300 * time.Millisecond)
		return new(service).RoundTrip(r)
	})
	for name, test := range map[string]struct {
		network http.RoundTripper
		cards   int
		ends    bool // and all are suspended
		failed  int
		want    error
	}{
		"400":               {refuses(400, 1, math.MaxInt64), 100_000, true, 0, bins.ErrBadRequest},
		"422":               {refuses(422, 1, math.MaxInt64), 100_000, true, 0, bins.ErrBadRequest},
		"a page":            {page, 100_000, true, 0, bins.ErrBadResponse},
		"after a result":    {refuses(400, 2, math.MaxInt64), 1000, false, 950, bins.ErrBadRequest},
		"before a result":   {refuses(400, 1, 7), 1000, false, 0, bins.ErrBadRequest},
		"slow results":      {slowResults, 1000, false, 550, bins.ErrBadRequest},
		"fewer than eight":  {refuses(400, 1, math.MaxInt64), 350, false, 350, bins.ErrBadRequest},
		"an outage between": {outage, 100_000, true, 0, bins.ErrBadRequest},
	} {
		synctest.Test(t, func(t *testing.T) {
			refused, suspended, results := 0, 0, 0
			var end error
			for r, err := range clientOver(t, test.network).LookupAll(t.Context(), numbered(test.cards), bins.BulkOptions{Concurrency: 4}) {
				switch {
				case err != nil:
					end = err
				case errors.Is(r.Err, bins.ErrSuspended) && errors.Is(r.Err, test.want):
					suspended++
				case errors.Is(r.Err, test.want):
					refused++
				case r.Err == nil:
					results++
				}
			}
			if test.ends != errors.Is(end, test.want) || errors.Is(end, bins.ErrSuspended) || test.ends && (refused > 0 || results > 0 || suspended < 8*bins.MaxCards || suspended > 3000) {
				t.Errorf("%s: ended with %v after %d refused and %d suspended", name, end, refused, suspended)
			}
			if !test.ends && (refused != test.failed || refused+results != test.cards) {
				t.Errorf("%s: %d refused and %d results of %d", name, refused, results, test.cards)
			}
		})
	}
}

// A first response that cannot be read, as of a proxy that starts, costs no card. If no other comes,
// the lookup ends, however few cards there are.
func TestLookupAllStartsBehindAProxy(t *testing.T) {
	for name, body := range map[string]string{"a page": "<html>", "half a response": `{"cards":[{"bin":`, "nothing": ""} {
		for _, cards := range []int{10, 2000} {
			for _, forever := range []bool{false, true} {
				network := &service{}
				var n atomic.Int64
				broken := transportFunc(func(r *http.Request) (*http.Response, error) {
					if n.Add(1) > 1 && !forever {
						return network.RoundTrip(r)
					}
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
				})
				synctest.Test(t, func(t *testing.T) {
					results, suspended := 0, 0
					var end error
					for r, err := range clientOver(t, broken).LookupAll(t.Context(), numbered(cards), bins.BulkOptions{}) {
						switch {
						case err != nil:
							end = err
						case r.Err == nil:
							results++
						case errors.Is(r.Err, bins.ErrSuspended):
							suspended++
						default:
							t.Errorf("%s: %v", name, r.Err)
						}
					}
					if !forever && (end != nil || results != cards) || forever && (!errors.Is(end, bins.ErrBadResponse) || suspended < 10 || n.Load() > 15) {
						t.Errorf("%s, %d cards: ended with %v after %d results and %d suspended in %d requests", name, cards, end, results, suspended, n.Load())
					}
				})
			}
		}
	}
}

// A card that is refused has its result when no other request can show whether all are: in a queue
// that waits for its next card, and behind more repetitions of it than are taken at once.
func TestLookupAllDoesNotHoldARefusedCard(t *testing.T) {
	refuses := func() *service { return &service{fail: func(int64) int { return 400 }} }
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		queue := func(yield func(string) bool) {
			if yield("400000") {
				<-ctx.Done()
			}
		}
		for r, err := range refuses().client(t).LookupAll(ctx, queue, bins.BulkOptions{ReadAhead: true}) {
			if err == nil && (!errors.Is(r.Err, bins.ErrBadRequest) || errors.Is(r.Err, bins.ErrSuspended)) {
				t.Error(r.Err)
			}
			cancel()
		}
	})
	repeated, results := slices.Repeat([]string{"400000"}, 100_000), 0
	for r, err := range refuses().client(t).LookupAll(t.Context(), slices.Values(repeated), bins.BulkOptions{}) {
		if err != nil || !errors.Is(r.Err, bins.ErrBadRequest) {
			t.Fatal(err, r.Err)
		}
		results++
	}
	if results != len(repeated) {
		t.Errorf("%d results", results)
	}
}

// A certificate that is refused, or a port that does not speak TLS, ends the lookup. As an
// outage it would be waited out.
func TestLookupAllEndsAtABrokenHandshake(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	pinned := errors.New("another key")
	for name, test := range map[string]struct {
		base   string
		config *tls.Config
		cause  error
	}{
		"untrusted":        {server.URL, &tls.Config{}, nil},
		"connection check": {server.URL, &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error { return pinned }}, pinned},
		"certificate check": {server.URL, &tls.Config{InsecureSkipVerify: true, VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error {
			return pinned
		}}, pinned},
		"no TLS": {"https" + strings.TrimPrefix(plain.URL, "http"), &tls.Config{}, nil},
	} {
		client, err := bins.NewClient(test.base, bins.StaticToken("k"), bins.WithTLSConfig(test.config))
		if err != nil {
			t.Fatal(err)
		}
		var end error
		for _, err := range client.LookupAll(t.Context(), numbered(10), bins.BulkOptions{GiveUpAfter: time.Nanosecond}) {
			end = err
		}
		if !errors.Is(end, bins.ErrNoResponse) || errors.Is(end, bins.ErrSuspended) || test.cause != nil && !errors.Is(end, test.cause) {
			t.Errorf("%s: ended with %v", name, end)
		}
	}
}

// While no result can be yielded, the number of inputs that are taken is bounded. Nothing is left
// after the loop.
func TestLookupAllStopsWithTheLoop(t *testing.T) {
	for name, test := range map[string]struct {
		input func(yield func(string) bool)
		most  int
	}{
		"different cards": {numbered(1 << 30), 5000},
		"one card": {func(yield func(string) bool) {
			for yield("411111") {
			}
		}, 32_768},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: func() time.Duration { return time.Hour }}
			taken := 0
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Minute, cancel)
			for r, err := range s.client(t, bins.WithAttemptTimeout(2*time.Hour)).LookupAll(ctx, func(yield func(string) bool) {
				for card := range test.input {
					if taken++; !yield(card) {
						return
					}
				}
			}, bins.BulkOptions{}) {
				if errors.Is(err, bins.ErrSuspended) || !errors.Is(cmp.Or(err, r.Err), context.Canceled) {
					t.Errorf("%s: %v, %v, want the end by cancellation", name, r, err)
				}
			}
			if taken > test.most {
				t.Errorf("%s: %d inputs were taken without a result", name, taken)
			}
			if s.inFlight.Load() != 0 {
				t.Errorf("%s: requests are left", name)
			}
			s.change(func() { s.latency = nil })
			for range s.client(t).LookupAll(t.Context(), numbered(1000), bins.BulkOptions{}) {
				break
			}
		})
	}
}

// After GiveUpAfter the lookup ends: what was taken is yielded, known cards from the memory,
// and the rest of the input is not taken.
func TestLookupAllGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 0
		s := &service{fail: func(int64) int { return status }}
		memory := bins.NewMemoryCache(bins.CacheOptions{TTL: time.Hour, StaleFor: 24 * time.Hour})
		o := bins.BulkOptions{GiveUpAfter: 10 * time.Minute, Memory: memory}
		for range s.client(t).LookupAll(t.Context(), numbered(100), o) {
		}
		time.Sleep(2 * time.Hour)
		s.change(func() { status = http.StatusServiceUnavailable })
		began, taken, suspended, stale := time.Now(), 0, 0, 0
		var end error
		for r, err := range s.client(t).LookupAll(t.Context(), func(yield func(string) bool) {
			for card := range numbered(50_000) {
				if taken++; !yield(card) {
					return
				}
			}
		}, o) {
			switch {
			case end != nil:
				t.Fatal("a result after the end")
			case err != nil:
				end = err
			case errors.Is(r.Err, bins.ErrSuspended) && errors.Is(r.Err, bins.ErrServer) && r.Index >= 100:
				suspended++
			case r.Err == nil && r.Result.Stale && r.Index < 100:
				stale++
			default:
				t.Fatalf("%d: %v, %v", r.Index, r, r.Err)
			}
		}
		if !errors.Is(end, bins.ErrSuspended) || !errors.Is(end, bins.ErrServer) {
			t.Errorf("ended with %v", end)
		}
		if took := time.Since(began); stale != 100 || suspended != taken-100 || taken > 10_000 || took < 10*time.Minute || took > 11*time.Minute {
			t.Errorf("%d suspended and %d stale of %d taken after %v", suspended, stale, taken, took)
		}
	})
}

// Misuse of lookups alone is tested in internal/proof/conformance/matrix.
func TestMisuseOfBulkLookupsAndLoaders(t *testing.T) {
	client := (&service{}).client(t)
	bulk := func(c *bins.Client, o bins.BulkOptions) error {
		for r, err := range c.LookupAll(t.Context(), numbered(3), o) {
			if r.Err != nil || r.Input.Reveal() != "" {
				t.Errorf("a result beside the error: %v", r)
			}
			return err
		}
		return nil
	}
	load := func(l *bins.Loader, ctx context.Context) error {
		_, err := l.Load(ctx, "411111")
		return err
	}
	newLoader := func(c *bins.Client, o bins.LoaderOptions) error {
		_, err := bins.NewLoader(c, o)
		return err
	}
	var none context.Context
	usable, err := bins.NewLoader(client, bins.LoaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"a nil client": bulk(nil, bins.BulkOptions{}), "a zero client": bulk(&bins.Client{}, bins.BulkOptions{}),
		"a negative concurrency": bulk(client, bins.BulkOptions{Concurrency: -1}), "a huge concurrency": bulk(client, bins.BulkOptions{Concurrency: math.MaxInt}),
		"a negative prefix": bulk(client, bins.BulkOptions{PrefixLength: -1}), "a prefix of 12": bulk(client, bins.BulkOptions{PrefixLength: 12}),
		"a zero loader": load(&bins.Loader{}, t.Context()), "a nil context": load(usable, none),
		"a loader of a nil client": newLoader(nil, bins.LoaderOptions{}), "a loader with a prefix of 12": newLoader(client, bins.LoaderOptions{PrefixLength: 12}),
	} {
		if !errors.Is(err, bins.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
