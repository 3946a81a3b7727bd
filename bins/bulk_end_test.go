package bins_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/fault"
)

// A wrong set-up ends the lookup after ten requests: what was taken is yielded, the rest is not taken.
func TestLookupAllEndsIfTheSetupIsWrong(t *testing.T) {
	failing := func(err error) http.RoundTripper {
		return transportFunc(func(*http.Request) (*http.Response, error) { return nil, err })
	}
	expired := &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}
	badToken := bins.WithTokenSource(bins.TokenFunc(func(context.Context) (string, error) { return "bad\ntoken", nil }))
	type set struct {
		network http.RoundTripper
		want    error
		option  bins.Option
	}
	tests := map[string]set{
		"an expired certificate": {network: failing(expired), want: bins.ErrNoResponse},
		"a wrong host":           {network: failing(&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}), want: bins.ErrNoResponse},
		"an unusable token":      {network: &service{}, want: bins.ErrCredential, option: badToken},
	}
	for status, want := range map[int]error{
		401: bins.ErrUnauthorized, 403: bins.ErrForbidden, 404: bins.ErrNotFound, 405: bins.ErrBadRequest, 407: bins.ErrForbidden,
		410: bins.ErrNotFound, 501: bins.ErrServer, 505: bins.ErrServer, 302: fault.ErrRedirect, 308: fault.ErrRedirect,
	} {
		tests[fmt.Sprint(status)] = set{network: &service{status: status}, want: want}
	}
	for name, test := range tests {
		for _, cards := range []int{30, 10_000} {
			for _, concurrency := range []int{1, 8} {
				t.Run(fmt.Sprint(name, " ", cards, " cards ", concurrency, " at a time"), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						client := clientOver(t, test.network)
						if test.option != nil {
							client = clientOver(t, test.network, test.option)
						}
						r := runBulk(t, client, cards, bins.BulkOptions{Concurrency: concurrency}, test.want)
						if !r.hasEnded(test.want) || r.results > 0 || r.progress.Requests > 10+concurrency || r.took > time.Second {
							t.Errorf("%+v", r)
						}
					})
				})
			}
		}
	}
}

// Once the service has worked, the set-up was right. A 403, 404 or 410 is then an answer to the cards of its request,
// and a 401 is waited out.
func TestLookupAllOutlastsASetupThatWasRight(t *testing.T) {
	for status, want := range map[int]error{403: bins.ErrForbidden, 404: bins.ErrNotFound, 410: bins.ErrNotFound, 401: nil, 501: nil, 302: nil} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			s := &service{latency: 10 * time.Millisecond}
			s.fail = func(n int64) int {
				if n > 4 && (time.Since(began) < 5*time.Minute && want == nil || n <= 12) {
					return status
				}
				return 0
			}
			failed := 0
			if want != nil {
				failed = 8 * bins.MaxCards
			}
			if r := runBulk(t, clientOver(t, s), 1000, bins.BulkOptions{Concurrency: 4}, want); r.end != nil || r.failed != failed || r.results != 1000-failed {
				t.Errorf("%d: %+v", status, r)
			}
		})
	}
}

// A limit that lets no further request through before the deadline ends the lookup at once, but not the requests that
// it has let through.
func TestLookupAllEndsAtALimit(t *testing.T) {
	for name, test := range map[string]struct {
		option      bins.Option
		latency     time.Duration
		concurrency int
		results     int
		want        error
	}{
		"a limit of nothing":         {bins.WithLimiter(rate.NewLimiter(10, 0)), 0, 1, 0, bins.ErrLocalLimit},
		"a limit beyond the context": {bins.WithRateLimit(1, 1), 0, 1, 3 * bins.MaxCards, context.DeadlineExceeded},
		"requests in flight":         {bins.WithRateLimit(1, 1), 400 * time.Millisecond, 4, 3 * bins.MaxCards, bins.ErrLocalLimit},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := clientOver(t, &service{latency: test.latency}, test.option)
			r := runBulkWithin(t, 2500*time.Millisecond, client, 10_000, bins.BulkOptions{Concurrency: test.concurrency}, test.want)
			if !r.hasEnded(test.want) || r.results != test.results || r.suspended == 0 || r.took >= 2500*time.Millisecond {
				t.Errorf("%s: %+v", name, r)
			}
		})
	}
}

// A service that refuses its first hundred cards ends the lookup, and none of its cards has a result: a lookup that
// goes on has to begin with them. With fewer cards in all, or after a result, a refusal fails its card alone.
func TestLookupAllEndsIfEveryCardIsRefused(t *testing.T) {
	for _, status := range []int{400, 413, 415, 422} {
		for _, test := range []struct {
			name  string
			works string // a card
			cards int
			ends  bool // and all are suspended
		}{
			{"all", "", 10_000, true},
			{"fewer than a hundred", "", 99, false},
			{"one works", "40000049", 150, false},
		} {
			synctest.Test(t, func(t *testing.T) {
				s := &service{refuse: func(body string) int {
					if test.works != "" && strings.Contains(body, test.works) && strings.Count(body, `"card":`) == 1 {
						return 0
					}
					return status
				}}
				want := bins.ErrBadRequest
				if status == http.StatusRequestEntityTooLarge {
					want = bins.ErrTooLarge
				}
				r := runBulk(t, clientOver(t, s), test.cards, bins.BulkOptions{Concurrency: 1}, want)
				switch {
				case test.ends && (!r.hasEnded(want) || r.progress.Requests > 2*99):
					t.Errorf("%d, %s: %+v", status, test.name, r)
				case !test.ends && (r.end != nil || r.failed+r.results != test.cards || (r.results == 1) != (test.works != "")):
					t.Errorf("%d, %s: %+v", status, test.name, r)
				}
			})
		}
	}
}

// A first response that cannot be read, as of a proxy that starts, costs no card. If no other comes,
// the lookup gives up, however few cards there are.
func TestLookupAllStartsBehindAProxy(t *testing.T) {
	for name, body := range map[string]string{"a page": "<html>", "half a response": `{"cards":[{"bin":`, "nothing": ""} {
		for _, cards := range []int{10, 500} {
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
					r := runBulk(t, clientOver(t, broken), cards, bins.BulkOptions{}, bins.ErrSuspended)
					if !forever && !r.isWhole(cards) || forever && (!errors.Is(r.end, bins.ErrBadResponse) || !errors.Is(r.end, bins.ErrSuspended) || r.suspended < 10 || n.Load() > 150) {
						t.Errorf("%s, %d cards: %+v after %d requests", name, cards, r, n.Load())
					}
				})
			}
		}
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
			s := &service{latency: time.Hour}
			taken := 0
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Minute, cancel)
			for r, err := range s.client(t, bins.WithAttemptTimeout(2*time.Hour)).LookupAll(ctx, taking(test.input, &taken), bins.BulkOptions{}) {
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
			s.change(func() { s.latency = 0 })
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
		s := &service{}
		memory := bins.NewMemoryCache(bins.CacheOptions{TTL: time.Hour, StaleFor: 24 * time.Hour})
		o := bins.BulkOptions{GiveUpAfter: 10 * time.Minute, Memory: memory}
		runBulk(t, s.client(t), 100, o)
		time.Sleep(2 * time.Hour)
		s.change(func() { s.status = http.StatusServiceUnavailable })
		r := runBulk(t, s.client(t), 50_000, o, bins.ErrSuspended, bins.ErrServer)
		if !errors.Is(r.end, bins.ErrSuspended) || !errors.Is(r.end, bins.ErrServer) {
			t.Errorf("ended with %v", r.end)
		}
		if r.stale != 100 || r.suspended != r.taken-100 || r.taken > 10_000 || r.took < 10*time.Minute || r.took > 11*time.Minute {
			t.Errorf("%+v", r)
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
