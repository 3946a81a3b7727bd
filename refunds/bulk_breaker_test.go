package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// An outage costs few records: those that open the breaker, those in flight with
// them, and the probes. What was not sent says why.
func TestSubmitAllGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const concurrency = 8
		s := &service{
			latency: func(string) time.Duration { return 10 * time.Millisecond },
			status:  func(string) int { return http.StatusGatewayTimeout },
		}
		counts := map[refunds.Outcome]int{}
		for s, err := range s.client(t).SubmitAll(t.Context(), refunds.Items("acct", numbered(1000)), refunds.BulkOptions{GiveUpAfter: 10 * time.Minute}) {
			counts[s.Outcome]++
			suspended := errors.Is(err, refunds.ErrSuspended)
			if suspended != (s.Outcome == refunds.OutcomeNotSent) || suspended && (s.Attempts != 0 || errors.Is(err, refunds.ErrOutcomeUnknown)) {
				t.Errorf("%v: %v", s, err)
			}
			if !errors.Is(err, refunds.ErrServer) {
				t.Errorf("%v does not say what failed", err)
			}
			if suspended && err.Error() != "refunds: submit: the service kept failing, submission is suspended: the refund was not sent" {
				t.Error(err)
			}
		}
		arrived := s.arrived
		var probes []time.Duration
		for i, a := range arrived {
			if a.at > 20*time.Millisecond {
				probes = append(probes, a.at-arrived[i-1].at)
			}
		}
		if before := len(arrived) - len(probes); before < concurrency || before > concurrency+4 {
			t.Errorf("%d records were sent before the breaker opened, want %d at most", before, concurrency+4)
		}
		shortened := false
		for i, wait := range probes[:len(probes)-1] {
			shortened = shortened || wait > 20*time.Millisecond+min(time.Second<<i, 2*time.Minute)/2
			grown := min(time.Second<<i, 2*time.Minute)
			if wait < grown/2 || wait > grown+20*time.Millisecond {
				t.Errorf("probe %d came after %v, want half of %v and more", i, wait, grown)
			}
		}
		if !shortened {
			t.Errorf("no probe came at random: %v", probes)
		}
		if last := arrived[len(arrived)-1].at; last < 10*time.Minute || last > 10*time.Minute+time.Second {
			t.Errorf("the last probe came after %v", last)
		}
		if counts[refunds.OutcomeUnknown] != len(arrived) || counts[refunds.OutcomeNotSent] != 1000-len(arrived) {
			t.Errorf("%v, sent %d", counts, len(arrived))
		}
	})
}

// Nineteen minutes without a connection cost some records, which were not sent.
// All others are accepted, soon after it.
func TestSubmitAllOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := refundstest.NewServer(t)
		began := time.Now()
		up := func() bool { return time.Since(began) < time.Minute || time.Since(began) > 20*time.Minute }
		inner := fake.HTTPClient().Transport
		client := fake.Client(refunds.WithRateLimit(1, 1), refunds.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if !up() {
				fake.Script(refundstest.Fault{Refuse: true})
			}
			return inner.RoundTrip(r)
		})}))
		counts := map[refunds.Outcome]int{}
		var pauses, resumes, notSent int
		paused := false
		o := refunds.BulkOptions{Progress: func(p refunds.BulkProgress) {
			switch {
			case p.Paused && !paused:
				pauses++
			case !p.Paused && paused:
				resumes++
			}
			paused, notSent = p.Paused, p.NotSent
		}}
		for s := range client.SubmitAll(t.Context(), refunds.Items("acct", numbered(1000)), o) {
			counts[s.Outcome]++
		}
		if lost := counts[refunds.OutcomeNotSent]; lost != notSent || lost < 12 || lost > 40 || counts[refunds.OutcomeAccepted] != 1000-lost {
			t.Errorf("%v", counts)
		}
		if len(fake.Recorded()) != counts[refunds.OutcomeAccepted] || pauses != 1 || resumes != 1 {
			t.Errorf("recorded %d of %v, paused %d times, resumed %d times", len(fake.Recorded()), counts, pauses, resumes)
		}
		if took := time.Since(began); took > 40*time.Minute {
			t.Errorf("took %v", took)
		}
	})
}

// Where new requests fail at once and those sent before still succeed, as when a service
// drains, an outage leaves no more outcomes unknown than any other.
func TestSubmitAllIsNotToldOfAnOutageByOldRequests(t *testing.T) {
	for _, concurrency := range []int{1, 8, 64} {
		synctest.Test(t, func(t *testing.T) {
			fake, began := refundstest.NewServer(t), time.Now()
			inner, n := fake.HTTPClient().Transport, atomic.Int64{}
			client := fake.Client(refunds.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if since := time.Since(began); since > 10*time.Second && since < 70*time.Second {
					return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody}, nil
				}
				time.Sleep(time.Duration(1+n.Add(1)%7) * time.Second)
				return inner.RoundTrip(r)
			})}))
			counts, probes := map[refunds.Outcome]int{}, 8
			for s := range client.SubmitAll(t.Context(), refunds.Items("acct", numbered(concurrency*20)), refunds.BulkOptions{Concurrency: concurrency}) {
				counts[s.Outcome]++
			}
			if unknown := counts[refunds.OutcomeUnknown]; unknown < 5 || unknown > 4+concurrency+probes || counts[refunds.OutcomeAccepted] != concurrency*20-unknown {
				t.Errorf("%d in flight: %v", concurrency, counts)
			}
		})
	}
}

// A few failures at once among successes that take their time are no outage.
func TestSubmitAllIsNotPausedByFewFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := atomic.Int64{}
		client := clientOver(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			if sent.Add(1)%40 == 0 {
				return testkit.Answer(503, "")(r)
			}
			time.Sleep(2 * time.Second)
			return testkit.Answer(200, "")(r)
		}))
		paused := 0
		o := refunds.BulkOptions{Concurrency: 128, Progress: func(p refunds.BulkProgress) {
			if p.Paused {
				paused++
			}
		}}
		for range client.SubmitAll(t.Context(), refunds.Items("acct", numbered(3000)), o) {
		}
		if paused > 0 {
			t.Errorf("%d results came in a pause", paused)
		}
	})
}

// A record that was suspended tells what failed before it.
func TestSuspendedHasACause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down, suspended := errors.New("down"), 0
		client := (&service{}).client(t, refunds.WithLimiter(limiterFunc(func(context.Context) error { return down })))
		for _, err := range client.SubmitAll(t.Context(), refunds.Items("acct", numbered(50)), refunds.BulkOptions{GiveUpAfter: time.Minute}) {
			failure, _ := errors.AsType[*refunds.Error](err)
			if failure.Cause() != down {
				t.Errorf("%v is caused by %v", err, failure.Cause())
			}
			if errors.Is(err, refunds.ErrSuspended) {
				suspended++
			}
		}
		if suspended == 0 {
			t.Error("nothing was suspended")
		}
	})
}

// A refused account does not keep the others from being submitted after an outage.
func TestSubmitAllOutlastsAnOutageAndARefusedAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, began := refundstest.NewServer(t), time.Now()
		fake.ScriptFunc(func(r refundstest.Request) refundstest.Fault {
			switch since := time.Since(began); {
			case since > time.Second && since < time.Minute:
				return refundstest.Fault{Status: 503}
			case r.Path == "/v1/bad/refunds":
				return refundstest.Fault{Status: 403}
			}
			return refundstest.Fault{HeaderDelay: 100 * time.Millisecond}
		})
		accounts := slices.Concat(slices.Repeat([]string{"good"}, 90), slices.Repeat([]string{"bad"}, 300), slices.Repeat([]string{"good"}, 500))
		counts := map[refunds.Outcome]int{}
		for s := range fake.Client().SubmitAll(t.Context(), table(accounts...), refunds.BulkOptions{}) {
			counts[s.Outcome]++
		}
		if counts[refunds.OutcomeNotSent] > 0 || counts[refunds.OutcomeAccepted] < 550 {
			t.Errorf("%v in %v", counts, time.Since(began))
		}
	})
}

// In an outage, the refusals of one account keep no probe of the others from coming later.
func TestSubmitAllKeepsItsDistanceBesideARefusedAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, began := refundstest.NewServer(t), time.Now()
		fake.ScriptFunc(func(r refundstest.Request) refundstest.Fault {
			switch {
			case r.Path == "/v1/bad/refunds":
				return refundstest.Fault{Status: 403}
			case time.Since(began) > time.Second && time.Since(began) < 25*time.Minute:
				return refundstest.Fault{Status: 503}
			}
			return refundstest.Fault{HeaderDelay: 100 * time.Millisecond}
		})
		counts := map[refunds.Outcome]int{}
		for s := range fake.Client().SubmitAll(t.Context(), table(slices.Repeat([]string{"good", "bad", "good"}, 700)...), refunds.BulkOptions{}) {
			counts[s.Outcome]++
		}
		if unknown := counts[refunds.OutcomeUnknown]; unknown < 5 || unknown > 45 || counts[refunds.OutcomeNotSent] > 0 {
			t.Errorf("%v in %v", counts, time.Since(began))
		}
	})
}

// An outage whose old requests still succeed, now and then, leaves no more outcomes unknown
// than any other.
func TestSubmitAllIsNotToldOfAnOutageByLateSuccesses(t *testing.T) {
	for _, concurrency := range []int{8, 64} {
		synctest.Test(t, func(t *testing.T) {
			began, n := time.Now(), atomic.Int64{}
			client := clientOver(t, roundTripper(func(r *http.Request) (*http.Response, error) {
				i := n.Add(1)
				if since := time.Since(began); since > 3*time.Second {
					return testkit.Answer(503, "")(r)
				}
				time.Sleep(time.Duration(i*37%60) * 100 * time.Millisecond)
				if since := time.Since(began); since > 3*time.Second && i%2 == 0 {
					return testkit.Answer(503, "")(r)
				}
				return testkit.Answer(200, "")(r)
			}))
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			unknown := 0
			for s := range client.SubmitAll(ctx, refunds.Items("acct", numbered(concurrency*1000)), refunds.BulkOptions{Concurrency: concurrency}) {
				if s.Index >= 0 && s.Outcome == refunds.OutcomeUnknown {
					unknown++
				}
			}
			if probes := 6; unknown < 5 || unknown > 4+concurrency+probes {
				t.Errorf("%d in flight: %d unknown", concurrency, unknown)
			}
		})
	}
}

// Where every account is refused, probes keep their distance, and the rest is not sent.
func TestSubmitAllGivesUpWhereAllAccountsAreRefused(t *testing.T) {
	for _, accounts := range []int{5, 10} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{
				latency: func(string) time.Duration { return 50 * time.Millisecond },
				status:  func(string) int { return http.StatusForbidden },
			}
			items := func(yield func(refunds.Item) bool) {
				for i := range 1000 {
					if !yield(refunds.Item{AccountID: fmt.Sprint(i % accounts), Refund: &refunds.Refund{RefundID: fmt.Sprint(i)}}) {
						return
					}
				}
			}
			suspended := 0
			for _, err := range s.client(t).SubmitAll(t.Context(), items, refunds.BulkOptions{}) {
				if errors.Is(err, refunds.ErrSuspended) {
					suspended++
				}
			}
			if sent := len(s.ids()); sent > 100 || suspended != 1000-sent || time.Since(s.began) < 30*time.Minute {
				t.Errorf("%d accounts: %d sent, %d suspended in %v", accounts, sent, suspended, time.Since(s.began))
			}
		})
	}
}

// Five failures that every record would meet pause the submission; refusals of a
// record, and failures with an answer between them, do not.
func TestSubmitAllTellsAnOutageFromARefusedRecord(t *testing.T) {
	down := refunds.WithTokenSource(refunds.TokenFunc(func(context.Context) (string, error) { return "", errors.New("down") }))
	for _, test := range []struct {
		name     string
		statuses []int // in turn
		pauses   bool
		opts     []refunds.Option
	}{
		{"accepted", []int{200}, false, nil},
		{"400", []int{400}, false, nil},
		{"409", []int{409}, false, nil},
		{"413", []int{413}, false, nil},
		{"422", []int{422}, false, nil},
		{"four failures, then an answer", []int{503, 503, 503, 503, 200}, false, nil},
		{"four failures, then a refusal", []int{503, 503, 503, 503, 400}, false, nil},
		{"503", []int{503}, true, nil},
		{"500", []int{500}, true, nil},
		{"408", []int{408}, true, nil},
		{"429", []int{429}, true, nil},
		{"401", []int{401}, true, nil},
		{"403", []int{403}, true, nil},
		{"404", []int{404}, true, nil},
		{"302", []int{302}, true, nil},
		{"307", []int{307}, true, nil},
		{"501", []int{501}, true, nil},
		{"a mixture", []int{503, 401, 429, 408, 302}, true, nil},
		{"no credential", nil, true, []refunds.Option{down}},
		{"no limiter", nil, true, []refunds.Option{refunds.WithLimiter(refusal{errors.New("down")})}},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			s := &service{status: func(string) int { n++; return test.statuses[(n-1)%len(test.statuses)] }}
			paused := false
			o := refunds.BulkOptions{Concurrency: 1, Progress: func(p refunds.BulkProgress) { paused = paused || p.Paused }}
			client := s.client(t, append(test.opts, refunds.WithMaxRetries(0))...)
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			for range client.SubmitAll(ctx, refunds.Items("acct", numbered(5)), o) {
			}
			if paused != test.pauses {
				t.Errorf("%s: paused %v", test.name, paused)
			}
		})
	}
}

// A pause is told when it begins, even if an earlier record holds the results back.
func TestSubmitAllTellsOfAPauseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{
			latency: func(id string) time.Duration { return map[string]time.Duration{"rf_0": 20 * time.Second}[id] },
			status: func(id string) int {
				if id == "rf_0" {
					return 200
				}
				return 503
			},
		}
		told := time.Duration(-1)
		o := refunds.BulkOptions{Ordered: true, Progress: func(p refunds.BulkProgress) {
			if p.Paused && told < 0 {
				told = time.Since(s.began)
			}
		}}
		for range s.client(t).SubmitAll(t.Context(), refunds.Items("acct", numbered(6)), o) {
		}
		if told != 0 {
			t.Errorf("told after %v", told)
		}
	})
}

// A pause ends with the context.
func TestSubmitAllDoesNotWaitForAProbeThatWillNotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute+time.Millisecond)
		defer cancel()
		s := &service{status: func(string) int { return 503 }}
		done := 0
		for s, err := range s.client(t).SubmitAll(ctx, refunds.Items("acct", numbered(1000)), refunds.BulkOptions{GiveUpAfter: -1}) {
			done++
			if errors.Is(err, refunds.ErrSuspended) || (s.Index < 0) != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v: %v", s, err)
			}
		}
		if took := time.Since(s.began); took != 90*time.Minute+time.Millisecond || done > 120 {
			t.Errorf("%d results in %v", done, took)
		}
	})
}

// What the end of the context cuts off says nothing of the service.
func TestSubmitAllIsNotPausedByItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := &service{latency: func(id string) time.Duration {
			if id == "rf_0" {
				return 0
			}
			return time.Hour
		}}
		var last refunds.BulkProgress
		o := refunds.BulkOptions{Grace: -1, Progress: func(p refunds.BulkProgress) {
			if last = p; p.Paused {
				t.Error("paused")
			}
		}}
		for s := range s.client(t).SubmitAll(ctx, refunds.Items("acct", numbered(1000)), o) {
			if s.Index == 0 {
				time.Sleep(2 * time.Second) // and then all else has settled
			}
		}
		if last.Unknown != 8 {
			t.Errorf("%+v", last)
		}
	})
}
