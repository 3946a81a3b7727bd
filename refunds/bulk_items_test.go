package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// table yields one refund for each account that is named, in order.
func table(accounts ...string) iter.Seq[refunds.Item] {
	return func(yield func(refunds.Item) bool) {
		for i, account := range accounts {
			if !yield(refunds.Item{AccountID: account, Refund: &refunds.Refund{RefundID: fmt.Sprint("rf_", i)}}) {
				return
			}
		}
	}
}

// Records with one refund_id wait for each other within their account alone.
func TestSubmitAllServesManyAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := refundstest.NewServer(t)
		fake.ScriptFunc(func(refundstest.Request) refundstest.Fault { return refundstest.Fault{HeaderDelay: time.Second} })
		began, accepted := time.Now(), 0
		items := func(yield func(refunds.Item) bool) {
			for _, account := range []string{"a", "b", "a", "c", "b"} {
				yield(refunds.Item{AccountID: account, Refund: &refunds.Refund{RefundID: "rf_1"}})
			}
		}
		for s, err := range fake.Client().SubmitAll(t.Context(), items, refunds.BulkOptions{Ordered: true}) {
			if want := []string{"a", "b", "a", "c", "b"}[accepted]; err != nil || s.AccountID != want || s.Index != accepted {
				t.Errorf("%v of %s: %v, want %s", s, s.AccountID, err, want)
			}
			accepted++
		}
		if took := time.Since(began); accepted != 5 || took != 2*time.Second {
			t.Errorf("%d accepted in %v, want 5 in 2s: two records of a and b, one after the other", accepted, took)
		}
		for _, r := range fake.Recorded()[3:] {
			if r.AccountID == "c" || r.At.Sub(began) < time.Second {
				t.Errorf("a record of %s came %v after the start", r.AccountID, r.At.Sub(began))
			}
		}
	})
}

// The options of the call hold for each item, whose own win, in each attempt.
func TestSubmitAllTakesOptions(t *testing.T) {
	mock := newMock(testkit.Answer(429, ""), testkit.Answer(200, ""))
	with := func(id string, opts ...refunds.Option) refunds.Item {
		return refunds.Item{AccountID: "acct-1", Refund: &refunds.Refund{RefundID: id}, Options: opts}
	}
	items := slices.Values([]refunds.Item{
		with("own", refunds.WithHeader("Idempotency-Key", "key-1"), refunds.WithHeader("X-Run", "own")),
		with("bad", refunds.WithHeader("Host", "canary")),
		with("client's", refunds.WithRateLimit(1, 1)),
		with("plain"),
	})
	var got []string
	for s, err := range newClient(t, mock).SubmitAll(t.Context(), items, refunds.BulkOptions{Concurrency: 1}, refunds.WithHeader("X-Run", "call")) {
		if errors.Is(err, refunds.ErrInvalidArgument) {
			got = append(got, s.RefundID+" refused")
			testkit.NoLeak(t, err, "canary")
		} else if err == nil {
			got = append(got, s.RefundID)
		}
	}
	if !slices.Equal(got, []string{"own", "bad refused", "client's refused", "plain"}) {
		t.Errorf("%q", got)
	}
	var sent []string
	for _, r := range mock.Requests() {
		sent = append(sent, r.Header.Get("X-Run")+" "+r.Header.Get("Idempotency-Key"))
	}
	if !slices.Equal(sent, []string{"own key-1", "own key-1", "call "}) {
		t.Errorf("%q", sent)
	}
}

// An account that the service refuses does not stop the others, wherever it stands
// in the input; an outage of all accounts pauses them all.
func TestSubmitAllTellsAnAccountFromAnOutage(t *testing.T) {
	repeat := func(account string, n int) []string { return slices.Repeat([]string{account}, n) }
	for name, test := range map[string]struct {
		accounts []string
		bad      string // prefix of the accounts that are refused
		status   int
		own      bool // the items have options of their own
		pauses   bool
	}{
		"in the middle":              {slices.Concat(repeat("a", 20), repeat("bad", 40), repeat("c", 20)), "bad", 404, false, false},
		"forbidden":                  {slices.Concat(repeat("a", 20), repeat("bad", 40), repeat("c", 20)), "bad", 403, false, false},
		"in turn":                    {slices.Repeat([]string{"a", "bad"}, 40), "bad", 404, false, false},
		"two of them":                {slices.Repeat([]string{"bad1", "bad2", "bad1", "bad2", "bad2", "bad1"}, 10), "bad", 404, false, false},
		"with its own token":         {slices.Concat(repeat("a", 20), repeat("bad", 40)), "bad", 401, true, false},
		"with the client's token":    {slices.Concat(repeat("a", 20), repeat("bad", 40)), "bad", 401, false, true},
		"a proxy that wants a login": {slices.Concat(repeat("a", 20), repeat("bad", 40)), "bad", 407, false, true},
		"an outage":                  {slices.Concat(repeat("a", 20), repeat("bad", 40)), "bad", 503, false, true},
		"alone":                      {repeat("bad", 20), "bad", 404, false, true},
		"all of many":                {[]string{"bad1", "bad2", "bad3", "bad4", "bad5", "bad6"}, "bad", 404, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := refundstest.NewServer(t)
			fake.ScriptFunc(func(r refundstest.Request) refundstest.Fault {
				if strings.HasPrefix(r.Path, "/v1/"+test.bad) {
					return refundstest.Fault{Status: test.status}
				}
				return refundstest.Fault{}
			})
			items := func(yield func(refunds.Item) bool) {
				for item := range table(test.accounts...) {
					if test.own {
						item.Options = []refunds.Option{refunds.WithTokenSource(refunds.StaticToken("token-of-" + item.AccountID))}
					}
					if !yield(item) {
						return
					}
				}
			}
			paused, counts := false, map[refunds.Outcome]int{}
			o := refunds.BulkOptions{GiveUpAfter: time.Minute, Progress: func(p refunds.BulkProgress) { paused = paused || p.Paused }}
			for s := range fake.Client(refunds.WithMaxRetries(0)).SubmitAll(t.Context(), items, o) {
				counts[s.Outcome]++
			}
			if paused != test.pauses {
				t.Errorf("%s: paused %v, %v", name, paused, counts)
			}
			if good := len(fake.Recorded()); !paused && counts[refunds.OutcomeRejected] != len(test.accounts)-good {
				t.Errorf("%s: %d recorded of %d, %v", name, good, len(test.accounts), counts)
			}
		})
	}
}

// What counts as failures in a row, where one request is in flight at a time.
func TestSubmitAllCountsFailuresInARow(t *testing.T) {
	for _, test := range []struct {
		name, answers string // for each record its account and status
		pauses        bool
	}{
		{"a success between the failures of accounts", "a200 b404 c404 a200 b404 c404 d404 e404 f404", true},
		{"one account, then another", "a404 a404 a404 a404 b404", false},
		{"an outage of the first account, then another", "a404 a503 a503 a503 b503", true},
		{"a limit of the first account, then another", "a404 a429 a429 a429 b429", true},
		{"an outage that is over, then one account, then another", "a503 a200 a404 a404 a404 a404 b404", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var accounts []string
			var statuses []int
			for answer := range strings.FieldsSeq(test.answers) {
				status, _ := strconv.Atoi(answer[1:])
				accounts, statuses = append(accounts, answer[:1]), append(statuses, status)
			}
			sent := 0
			s := &service{status: func(string) int { sent++; return statuses[sent-1] }}
			paused := false
			o := refunds.BulkOptions{Concurrency: 1, Progress: func(p refunds.BulkProgress) { paused = paused || p.Paused }}
			for range s.client(t, refunds.WithMaxRetries(0)).SubmitAll(t.Context(), table(accounts...), o) {
			}
			if paused != test.pauses || sent != len(statuses) {
				t.Errorf("%s: paused %v, sent %d", test.name, paused, sent)
			}
		})
	}
}

// If the first account is refused, the input is read on for another one.
func TestSubmitAllOutlastsAFirstAccountThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paused atomic.Bool
		fake := refundstest.NewServer(t)
		fake.ScriptFunc(func(r refundstest.Request) refundstest.Fault {
			if r.Path == "/v1/bad/refunds" {
				return refundstest.Fault{Status: 404}
			}
			if paused.Load() {
				t.Error("sent while the pause was not told to be over")
			}
			return refundstest.Fault{}
		})
		began := time.Now()
		var last refunds.BulkProgress
		o := refunds.BulkOptions{Progress: func(p refunds.BulkProgress) { last = p; paused.Store(p.Paused) }}
		accounts := append(slices.Repeat([]string{"bad"}, 500), slices.Repeat([]string{"good"}, 100)...)
		for range fake.Client().SubmitAll(t.Context(), table(accounts...), o) {
		}
		if last.Rejected != 500 || last.Accepted != 100 || last.Paused || time.Since(began) > 0 {
			t.Errorf("%+v after %v", last, time.Since(began))
		}
	})
}

// An item that cannot be sent is of no account: it does not end the pause of the only
// one there is.
func TestSubmitAllCountsNoUnusableAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{status: func(string) int { return 404 }}
		var accounts []string
		for range 20 {
			accounts = append(accounts, "a", "")
		}
		paused := false
		o := refunds.BulkOptions{Concurrency: 1, GiveUpAfter: time.Minute, Progress: func(p refunds.BulkProgress) { paused = p.Paused }}
		for range s.client(t).SubmitAll(t.Context(), table(accounts...), o) {
		}
		if !paused || len(s.ids()) > 15 {
			t.Errorf("paused %v, sent %d", paused, len(s.ids()))
		}
	})
}

// An item with a limiter of its own that has no time left ends itself alone.
func TestSubmitAllOutlastsAnItemsOwnLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := &service{}
		limiter := rate.NewLimiter(rate.Every(time.Hour), 1) // the next one comes after the deadline
		items := func(yield func(refunds.Item) bool) {
			for item := range table("a", "slow", "slow", "slow", "slow", "slow", "slow", "b") {
				if item.AccountID == "slow" {
					item.Options = []refunds.Option{refunds.WithLimiter(limiter)}
				}
				if !yield(item) {
					return
				}
			}
		}
		var got []string
		paused := false
		o := refunds.BulkOptions{Concurrency: 1, Progress: func(p refunds.BulkProgress) { paused = paused || p.Paused }}
		for s := range s.client(t).SubmitAll(ctx, items, o) {
			got = append(got, s.AccountID+" "+s.Outcome.String())
		}
		if len(got) != 8 || got[7] != "b accepted" || paused {
			t.Errorf("%q, paused %v", got, paused)
		}
	})
}

// A result does not wait for the next record of a queue.
func TestReadAheadYieldsWhileTheInputWaits(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			queue := make(chan refunds.Item)
			inputEnded := false
			input := func(yield func(refunds.Item) bool) {
				defer func() { inputEnded = true }()
				for {
					select {
					case item := <-queue:
						if !yield(item) {
							return
						}
					case <-ctx.Done():
						time.Sleep(time.Second) // it closes something
						return
					}
				}
			}
			s := &service{latency: func(string) time.Duration { return time.Second }}
			began, results := time.Now(), 0
			go func() {
				for item := range table("a", "a", "a") {
					queue <- item
					time.Sleep(time.Hour)
				}
				cancel()
			}()
			for s, err := range s.client(t).SubmitAll(ctx, input, refunds.BulkOptions{ReadAhead: true, Ordered: ordered}) {
				if s.Index < 0 {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					continue
				}
				if at := time.Since(began); err != nil || at != time.Duration(results)*time.Hour+time.Second {
					t.Errorf("%v came after %v: %v", s, at, err)
				}
				results++
			}
			if results != 3 || !inputEnded || time.Since(began) != 3*time.Hour+time.Second {
				t.Errorf("%d results, input ended %v, after %v", results, inputEnded, time.Since(began))
			}
		})
	}
}

// A record that is ready waits neither for the loop nor for the response of another.
func TestReadAheadSendsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func(id string) time.Duration {
			return map[string]time.Duration{"rf_0": time.Second, "rf_1": time.Hour, "rf_2": time.Second}[id]
		}}
		input := func(yield func(refunds.Item) bool) {
			for item := range table("a", "b", "c") {
				if item.AccountID == "c" {
					time.Sleep(time.Second / 2)
				}
				yield(item)
			}
			time.Sleep(2 * time.Hour)
		}
		for s := range s.client(t, refunds.WithAttemptTimeout(0)).SubmitAll(t.Context(), input, refunds.BulkOptions{ReadAhead: true, Concurrency: 2}) {
			if s.Index == 0 {
				time.Sleep(time.Minute)
			}
		}
		if s.arrived[1].at != 0 || s.arrived[2].at != time.Second {
			t.Errorf("%v", s.arrived)
		}
	})
}

// A record that the input's yield returned false for was not sent. After the loop
// was left, nothing waits for an input that waits for something else.
func TestReadAheadTakesNothingItDoesNotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func(string) time.Duration { return time.Second }}
		var taken []string
		done := make(chan struct{})
		input := func(yield func(refunds.Item) bool) {
			defer close(done)
			for item := range table(slices.Repeat([]string{"a"}, 100)...) {
				if !yield(item) {
					time.Sleep(time.Hour)
					return
				}
				taken = append(taken, item.Refund.RefundID)
			}
		}
		heard := 0
		o := refunds.BulkOptions{ReadAhead: true, Concurrency: 4, Abandoned: func(refunds.Submission, error) { heard++ }}
		for range s.client(t).SubmitAll(t.Context(), input, o) {
			heard++
			break
		}
		if took := time.Since(s.began); took > 3*time.Second {
			t.Errorf("leaving took %v", took)
		}
		<-done
		if len(taken) != heard || len(s.ids()) < 4 || !slices.Contains(taken, slices.Max(s.ids())) {
			t.Errorf("taken %v, sent %v, heard of %d", taken, s.ids(), heard)
		}
	})
}

// An input that does not end with the context delays the end by the grace period.
func TestReadAheadDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		block := make(chan struct{})
		defer close(block)
		s := &service{}
		for range s.client(t).SubmitAll(ctx, func(func(refunds.Item) bool) { <-block }, refunds.BulkOptions{ReadAhead: true, Grace: 5 * time.Second}) {
		}
		if took := time.Since(s.began); took != 65*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// A panic of the input reaches the loop's goroutine, after every record has its
// result.
func TestReadAheadPassesPanicsOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	for name, fail := range map[string]func(){
		"panic": func() { panic("on purpose") },
		"exit":  runtime.Goexit,
		"panic after the end": func() {
			cancel()
			time.Sleep(10 * time.Second)
			panic("on purpose")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			s := &service{latency: func(string) time.Duration { return time.Second }}
			heard := 0
			var panicked any
			func() {
				defer func() { panicked = recover() }()
				o := refunds.BulkOptions{ReadAhead: true, Abandoned: func(refunds.Submission, error) { heard++ }}
				for s := range s.client(t).SubmitAll(ctx, func(yield func(refunds.Item) bool) {
					for item := range table("a", "b", "c") {
						yield(item)
					}
					fail()
				}, o) {
					if s.Index >= 0 {
						heard++
					}
				}
			}()
			if panicked == nil || name != "exit" && panicked != "on purpose" || heard != 3 {
				t.Errorf("%s: %v, heard of %d, sent %v", name, panicked, heard, s.ids())
			}
		})
	}
}

// Waiting for a queue takes no processor time, in a pause either.
func TestReadAheadDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s := &service{status: func(string) int { return http.StatusServiceUnavailable }}
		input := func(yield func(refunds.Item) bool) {
			for item := range table("a", "a", "a", "a", "a", "a") {
				yield(item)
			}
			<-ctx.Done()
		}
		for range s.client(t).SubmitAll(ctx, input, refunds.BulkOptions{ReadAhead: true}) {
		}
		if took := time.Since(s.began); took != time.Hour || len(s.ids()) != 6 {
			t.Errorf("%v, sent %v", took, s.ids())
		}
	})
}

// The error that ends a submission is about no refund.
func TestSubmitAllEndsWithoutAnOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		fake := refundstest.NewServer(t)
		fake.ScriptFunc(func(refundstest.Request) refundstest.Fault { return refundstest.Fault{HeaderDelay: 3 * time.Second} })
		var last refunds.Submission
		var end error
		for last, end = range fake.Client().SubmitAll(ctx, refunds.Items("acct", numbered(100)), refunds.BulkOptions{Concurrency: 1}) {
		}
		var outcome *refunds.OutcomeError
		if last != (refunds.Submission{Index: -1}) || errors.As(end, &outcome) || len(outcomesOf(end)) > 0 || !errors.Is(end, context.DeadlineExceeded) {
			t.Errorf("%+v, %v", last, end)
		}
		if text := fmt.Sprint(last, " ", end); strings.Contains(text, "refund ") || strings.Contains(text, "sent") || strings.Contains(text, "unknown") {
			t.Errorf("it speaks of a refund: %s", text)
		}
	})
}

func TestItemPrintsNoMoreThanItsRefund(t *testing.T) {
	r := record()
	r.AdditionalData.Description = "description-secret"
	item := refunds.Item{AccountID: "acct-secret", Refund: r, Options: []refunds.Option{refunds.WithHeader("Idempotency-Key", "key-secret")}}
	for form, text := range testkit.Printed(item) {
		if !strings.Contains(form, "in a") {
			testkit.NoSecret(t, form, text, "acct-secret", "description-secret", "key-secret")
		}
	}
	if got := fmt.Sprintf("%+v %+v", item, refunds.Item{}); got != "refund rf-canary, amount 10150 USD no refund" || item.LogValue().String() != fmt.Sprint(item) {
		t.Error(got, item.LogValue())
	}
}

// Options of its own do not make an unusable record usable, and the highest
// concurrency is allowed.
func TestUnusableRecordWithOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := refundstest.NewServer(t)
		own, n := []refunds.Option{refunds.WithHeader("X-Record", "1")}, 0
		items := []refunds.Item{
			{AccountID: "acct", Refund: &refunds.Refund{RefundID: "rf_0", Currency: "\xff"}, Options: own},
			{AccountID: "..", Refund: &refunds.Refund{RefundID: "rf_1"}, Options: own},
		}
		for s, err := range fake.Client().SubmitAll(t.Context(), slices.Values(items), refunds.BulkOptions{Concurrency: 10_000}) {
			item := items[n]
			n++
			if s.Index != n-1 || s.RefundID != item.Refund.RefundID || s.AccountID != item.AccountID || s.Outcome != refunds.OutcomeNotSent || !errors.Is(err, refunds.ErrInvalidArgument) {
				t.Errorf("%v, %v", s, err)
			}
		}
		if sent := len(fake.Recorded()); sent != 0 || n != len(items) {
			t.Errorf("%d results, %d recorded", n, sent)
		}
	})
}
