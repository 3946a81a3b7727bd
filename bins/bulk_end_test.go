package bins_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
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

// taking counts the inputs that are taken.
func taking(input iter.Seq[string], taken *int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for card := range input {
			if *taken++; !yield(card) {
				return
			}
		}
	}
}

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
		tests[fmt.Sprint(status)] = set{network: &service{fail: func(int64) int { return status }}, want: want}
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
						began, suspended, taken, requests := time.Now(), 0, 0, 0
						var end error
						o := bins.BulkOptions{Concurrency: concurrency, Progress: func(p bins.BulkProgress) { requests = p.Requests }}
						for r, err := range client.LookupAll(t.Context(), taking(numbered(cards), &taken), o) {
							switch {
							case end != nil:
								t.Error("a result after the end")
							case err != nil:
								end = err
							case errors.Is(r.Err, bins.ErrSuspended) && errors.Is(r.Err, test.want):
								suspended++
							default:
								t.Errorf("result %d: %v", r.Index, r.Err)
							}
						}
						if !errors.Is(end, test.want) || errors.Is(end, bins.ErrSuspended) || suspended != taken || requests > 10+concurrency {
							t.Errorf("ended with %v after %d requests and %d suspended of %d taken", end, requests, suspended, taken)
						}
						if took := time.Since(began); took > time.Second {
							t.Errorf("ended after %v", took)
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
			s := &service{latency: func() time.Duration { return 10 * time.Millisecond }}
			s.fail = func(n int64) int {
				if n > 4 && (time.Since(began) < 5*time.Minute && want == nil || n <= 12) {
					return status
				}
				return 0
			}
			failed, results := 0, 0
			for r, err := range clientOver(t, s).LookupAll(t.Context(), numbered(1000), bins.BulkOptions{Concurrency: 4}) {
				switch {
				case err != nil:
					t.Errorf("%d: %v", status, err)
				case r.Err == nil:
					results++
				case want != nil && errors.Is(r.Err, want) && !errors.Is(r.Err, bins.ErrSuspended):
					failed++
				default:
					t.Errorf("%d: %v", status, r.Err)
				}
			}
			if failed+results != 1000 || want == nil && failed > 0 || want != nil && failed != 8*bins.MaxCards {
				t.Errorf("%d: %d failed and %d results", status, failed, results)
			}
		})
	}
}

// A limit that lets no further request through ends the lookup.
func TestLookupAllEndsAtALimit(t *testing.T) {
	for name, test := range map[string]struct {
		option  bins.Option
		results int
		want    error
	}{
		"a limit of nothing":         {bins.WithLimiter(rate.NewLimiter(10, 0)), 0, bins.ErrLocalLimit},
		"a limit beyond the context": {bins.WithRateLimit(1, 1), 550, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
			defer cancel()
			began, results, suspended, taken := time.Now(), 0, 0, 0
			var end error
			for r, err := range clientOver(t, &service{}, test.option).LookupAll(ctx, taking(numbered(10_000), &taken), bins.BulkOptions{Concurrency: 1}) {
				switch {
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
			if !errors.Is(end, test.want) || errors.Is(end, bins.ErrSuspended) || results != test.results || results+suspended != taken || time.Since(began) > 10*time.Second {
				t.Errorf("%s: ended with %v after %v with %d results and %d suspended of %d taken", name, end, time.Since(began), results, suspended, taken)
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
				refused, suspended, results := 0, 0, 0
				var end error
				for r, err := range clientOver(t, s).LookupAll(t.Context(), numbered(test.cards), bins.BulkOptions{Concurrency: 1}) {
					switch condition := bins.ErrBadRequest; {
					case err != nil:
						end = err
					case r.Err == nil && r.Input.Reveal() == test.works:
						results++
					case !errors.Is(r.Err, condition) && !errors.Is(r.Err, bins.ErrTooLarge):
						t.Fatal(r.Err)
					case errors.Is(r.Err, bins.ErrSuspended):
						suspended++
					default:
						refused++
					}
				}
				switch {
				case test.ends && (end == nil || errors.Is(end, bins.ErrSuspended) || refused > 0 || s.requests.Load() > 2*99):
					t.Errorf("%d, %s: ended with %v after %d refused and %d suspended in %d requests", status, test.name, end, refused, suspended, s.requests.Load())
				case !test.ends && (end != nil || refused+results != test.cards || (results == 1) != (test.works != "")):
					t.Errorf("%d, %s: ended with %v after %d refused, %d suspended and %d results", status, test.name, end, refused, suspended, results)
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
					if !forever && (end != nil || results != cards) || forever && (!errors.Is(end, bins.ErrBadResponse) || !errors.Is(end, bins.ErrSuspended) || suspended < 10 || n.Load() > 150) {
						t.Errorf("%s, %d cards: ended with %v after %d results and %d suspended in %d requests", name, cards, end, results, suspended, n.Load())
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
			s := &service{latency: func() time.Duration { return time.Hour }}
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
		for r, err := range s.client(t).LookupAll(t.Context(), taking(numbered(50_000), &taken), o) {
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
