package refunds_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// What fails holds up nothing else: the others are accepted, and leave at once.
func TestWhatFailsFailsAlone(t *testing.T) {
	const n, latency = 600, 100 * time.Millisecond
	for name, test := range map[string]struct {
		fails       func(i int) bool
		account, id string // of those that fail, if they are not those of the others
		deadline    time.Duration
		answer      func(*http.Request) (*http.Response, error)
		opts        []refunds.Option
	}{
		"3 %":                           {fails: func(i int) bool { return i*i%97 < 2 }, answer: testkit.Answer(500, "")},
		"an account":                    {fails: func(i int) bool { return i%3 > 0 }, account: "bad", answer: testkit.Answer(500, "")},
		"a refund":                      {fails: func(i int) bool { return i%40 > 0 }, id: "rf_bad", answer: testkit.Answer(502, "")},
		"an account with a Retry-After": {fails: func(i int) bool { return i%3 == 0 }, account: "bad", answer: testkit.Answer(429, "", "Retry-After", "20")},
		"an account with a 401":         {fails: func(i int) bool { return i%3 == 0 }, account: "bad", answer: testkit.Answer(401, ""), opts: []refunds.Option{refunds.WithTokenSource(refunds.StaticToken("token"))}},
		"callers with little time":      {fails: func(i int) bool { return i%3 > 0 }, deadline: latency / 2, answer: testkit.Answer(200, "")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failing sync.Map
				client := clientOver(t, roundTripper(func(r *http.Request) (*http.Response, error) {
					select {
					case <-time.After(latency):
					case <-r.Context().Done():
						return nil, context.Cause(r.Context())
					}
					if _, bad := failing.Load(refundID(r)); bad {
						return test.answer(r)
					}
					return testkit.Answer(200, "")(r)
				}), append(test.opts, refunds.WithMaxRetries(0))...)
				var mu sync.Mutex
				var calls sync.WaitGroup
				others, lost, late := 0, 0, 0
				for i := range n {
					account, id, deadline := "good", fmt.Sprint("rf_", i), 10*time.Second
					if test.fails(i) {
						account, id, deadline = cmp.Or(test.account, account), cmp.Or(test.id, id), cmp.Or(test.deadline, deadline)
						failing.Store(id, true)
					} else {
						others++
					}
					calls.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), deadline)
						defer cancel()
						began := time.Now()
						_, err := client.Submit(ctx, account, &refunds.Refund{RefundID: id})
						took := time.Since(began)
						mu.Lock()
						defer mu.Unlock()
						switch {
						case test.fails(i):
						case err != nil:
							lost++
						case took > latency:
							late++
						}
					})
					time.Sleep(100 * time.Millisecond)
				}
				calls.Wait()
				if lost > 0 || late > 0 {
					t.Errorf("of %d others, %d not accepted and %d late", others, lost, late)
				}
			})
		})
	}
}

// An outage costs what the breaker counts, what was in flight, and the probes. Meanwhile nothing is sent, and the error
// has the time to the next probe: the refund may be submitted again then, even if the failures before meant to fix the
// setup. Half a minute after its end, all refunds are accepted again. A credential that is
// refused to all refunds is an outage if it is the client's, and not if it is the call's.
func TestOutage(t *testing.T) {
	const begins, ends = 10 * time.Second, 130 * time.Second
	broken := func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset by peer") }
	token := refunds.WithTokenSource(refunds.StaticToken("token"))
	for name, test := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		client []refunds.Option
		call   []refunds.CallOption
		isNone bool // nothing is held back
	}{
		"broken connections":             {answer: broken},
		"the client's credential is bad": {answer: testkit.Answer(401, ""), client: []refunds.Option{token}},
		"the proxy's credential is bad":  {answer: testkit.Answer(407, "")},
		"the call's credential is bad":   {answer: testkit.Answer(401, ""), call: []refunds.CallOption{token}, isNone: true},
		"other refusals":                 {answer: testkit.Answer(422, ""), isNone: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				client := clientOver(t, roundTripper(func(r *http.Request) (*http.Response, error) {
					if at := time.Since(began); at > begins && at < ends {
						return test.answer(r)
					}
					return testkit.Answer(200, "")(r)
				}), test.client...)
				outcomes := map[refunds.Outcome]int{}
				for time.Since(began) < ends+30*time.Second {
					_, err := client.Submit(t.Context(), "acct-1", &refunds.Refund{RefundID: fmt.Sprint(time.Since(began))}, test.call...)
					if failed, ok := errors.AsType[*refunds.Error](err); ok {
						outcomes[failed.Outcome]++
						if failed.Outcome == notSent {
							verdict{notSent, "suspended", resubmit}.check(t, name, err)
							if failed.RetryAfter <= 0 || failed.RetryAfter > 30*time.Second {
								t.Fatalf("%v, after %v", err, failed.RetryAfter)
							}
						}
					}
					time.Sleep(100 * time.Millisecond)
				}
				sent := outcomes[unknown] + outcomes[rejected]
				if test.isNone && outcomes[notSent] > 0 || !test.isNone && (sent > 50 || outcomes[notSent] < 1100) {
					t.Errorf("%v", outcomes)
				}
				for range 100 {
					if _, err := client.Submit(t.Context(), "acct-1", record(), test.call...); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// Records that always fail hold up no other, and a file of them ends in the time that the service takes.
func TestSubmitAllGoesOnBesideRecordsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, latency = 1000, 100 * time.Millisecond
		fails := func(id string) bool {
			return strings.HasSuffix(id, "2") || strings.HasSuffix(id, "5") || strings.HasSuffix(id, "8")
		}
		s := &service{
			latency: func(string) time.Duration { return latency },
			status: func(id string) int {
				if fails(id) {
					return http.StatusInternalServerError
				}
				return http.StatusOK
			},
		}
		counts, end := count(t, s.client(t), numbered(n), refunds.BulkOptions{})
		if took, byHand := time.Since(s.began), n*latency/8; counts[accepted] != n*7/10 || counts[unknown] != n*3/10 || end != nil || took > 2*byHand {
			t.Errorf("%v in %v, by hand %v: %v", counts, took, byHand, end)
		}
	})
}

// A bulk call makes its own load: it stays below a limit beyond which the service answers 500.
func TestSubmitAllStaysBelowALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 4000
		limiter := rate.NewLimiter(40, 10)
		s := &service{
			latency: func(string) time.Duration { return 60 * time.Millisecond },
			status: func(string) int {
				if limiter.Allow() {
					return http.StatusOK
				}
				return http.StatusInternalServerError
			},
		}
		counts, end := count(t, s.client(t), numbered(n), refunds.BulkOptions{Concurrency: 64})
		if took := time.Since(s.began); counts[accepted] < n*95/100 || end != nil || took > 2*n/40*time.Second {
			t.Errorf("%v in %v: %v", counts, took, end)
		}
	})
}

// A credential that is refused from the start ends a file at once. After an accepted record, the file waits for another
// credential. Records that are refused each for itself end nothing, however long.
func TestSubmitAllWithAWrongSetup(t *testing.T) {
	for name, test := range map[string]struct {
		status, accepts int
		latency         time.Duration
		end             error
		took            time.Duration
		results         int // at most
	}{
		"from the start": {401, 0, 0, refunds.ErrUnauthorized, 0, 50},
		"later":          {401, 1, 0, refunds.ErrSuspended, 30 * time.Minute, 150},
		"each record":    {422, 0, 2 * time.Second, nil, 33 * time.Minute, 1000},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{latency: func(string) time.Duration { return test.latency }, status: func(id string) int {
				if id < fmt.Sprint("rf_", test.accepts) {
					return http.StatusOK
				}
				return test.status
			}}
			counts, end := count(t, s.client(t, refunds.WithTokenSource(refunds.StaticToken("token"))), numbered(1000), refunds.BulkOptions{Concurrency: 1})
			results := counts[accepted] + counts[rejected] + counts[notSent]
			if took := time.Since(s.began).Truncate(time.Minute); !errors.Is(end, test.end) || errors.Is(end, refunds.ErrSuspended) != (test.end == refunds.ErrSuspended) || took != test.took {
				t.Errorf("%s: after %v: %v", name, took, end)
			}
			if counts[accepted] != test.accepts || results > test.results || end == nil && results < 1000 {
				t.Errorf("%s: %v", name, counts)
			}
		})
	}
}

// The log says how many results nobody got, because the loop was left without Abandoned.
func TestResultsThatAreLost(t *testing.T) {
	for want, abandoned := range map[string]func(refunds.Submission){
		"accepted=3 rejected=0 not_sent=0 unknown=0\n": nil,
		"": func(refunds.Submission) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s := &service{latency: func(string) time.Duration { return time.Second }}
			client := s.client(t, refunds.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))))
			for range client.SubmitAll(t.Context(), numbered(4), refunds.BulkOptions{Abandoned: abandoned}) {
				break
			}
			if !strings.HasSuffix(log.String(), want) || (want == "") != (log.Len() == 0) {
				t.Errorf("%q, want %q", &log, want)
			}
		})
	}
}
