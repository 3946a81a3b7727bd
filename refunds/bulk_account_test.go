package refunds_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

func repeat(n int, accounts ...string) []string { return slices.Repeat(accounts, n) }

// many returns n records of k accounts that are refused, in turn.
func many(k, n int) (accounts []string) {
	for i := range n {
		accounts = append(accounts, fmt.Sprint("bad", i%k))
	}
	return accounts
}

// refusesBad refuses the accounts that begin with "bad".
func refusesBad(status int, delay time.Duration) func(sandbox.Request) sandbox.Fault {
	return func(r sandbox.Request) sandbox.Fault {
		fault := sandbox.Fault{Delay: delay}
		if strings.HasPrefix(r.Path, "/v1/bad") {
			fault.Status = status
		}
		return fault
	}
}

// interleave puts an account before each of the others.
func interleave(account string, others []string) (accounts []string) {
	for _, other := range others {
		accounts = append(accounts, account, other)
	}
	return accounts
}

// If some refunds of an account are refused with 404, so that others of it are accepted between them,
// that is about these refunds. Nothing else waits for that.
func TestRefusalsOfSomeRefunds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
	synctest.Test(t, func(t *testing.T) {
		s := &service{latency: func(string) time.Duration { return 100 * time.Millisecond }, status: func(id string) int {
			if strings.HasSuffix(id, "1") || strings.HasSuffix(id, "2") || strings.HasSuffix(id, "3") {
				return http.StatusNotFound
			}
			return http.StatusOK
		}}
		if counts := submits(s.client(t), 1000, 50*time.Millisecond, 10*time.Second); counts[accepted] != 700 || counts[rejected] != 300 {
			t.Errorf("Submit: %v", counts)
		}
		began := time.Now()
		if counts, err := count(t, s.client(t), numbered(1000), refunds.BulkOptions{}); err != nil || counts[accepted] != 700 || counts[rejected] != 300 || time.Since(began) > time.Minute {
			t.Errorf("SubmitAll: %v after %v: %v", counts, time.Since(began), err)
		}
	})
}

// A firewall that refuses all accounts is noticed by a few requests, however many have worked.
func TestRefusalsOfAllAccounts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds with the race detector: run without -short")
	}
	for _, accounts := range []int{1, 10, 30} {
		synctest.Test(t, func(t *testing.T) {
			status := http.StatusOK
			s := &service{status: func(string) int { return status }}
			client := s.client(t)
			submitEach := func(n int) {
				for i := range n {
					_, _ = client.Submit(t.Context(), fmt.Sprint("a", i%accounts), record())
					time.Sleep(50 * time.Millisecond)
				}
			}
			submitEach(100)
			s.change(func() { status = http.StatusForbidden })
			before := len(s.sent())
			if submitEach(1200); len(s.sent())-before > 45 { // 16, 16 and 37
				t.Errorf("%d accounts: %d requests in a minute", accounts, len(s.sent())-before)
			}
		})
	}
}

// An account that the service refuses does not stop the others, wherever it stands in the
// input. If no account works, submission ends at once, or pauses if one has worked before.
func TestSubmitAllTellsAnAccountFromAnOutage(t *testing.T) {
	const goesOn, pauses, ends = "goes on", "pauses", "ends"
	own := refunds.WithTokenSource(refunds.StaticToken("token"))
	for name, test := range map[string]struct {
		accounts []string // those that begin with "bad" are refused
		status   int
		own      bool // the items have a token of their own
		want     string
	}{
		"in the middle":                {slices.Concat(repeat(20, "a"), repeat(40, "bad"), repeat(20, "c")), 404, false, goesOn},
		"forbidden":                    {slices.Concat(repeat(20, "a"), repeat(40, "bad"), repeat(20, "c")), 403, false, goesOn},
		"in turn":                      {repeat(40, "a", "bad"), 404, false, goesOn},
		"first":                        {slices.Concat(repeat(900, "bad"), repeat(100, "a")), 404, false, goesOn},
		"thirty of them":               {slices.Concat(many(30, 900), repeat(100, "a")), 404, false, goesOn},
		"thirty beside one that works": {slices.Concat(repeat(10, "a"), many(30, 90), repeat(10, "a")), 410, false, goesOn},
		"forty, one by one":            {interleave("a", many(40, 40)), 403, false, goesOn},
		"with its own token":           {slices.Concat(repeat(20, "a"), repeat(40, "bad")), 401, true, goesOn},
		"with the client's token":      {slices.Concat(repeat(20, "a"), repeat(40, "bad")), 401, false, pauses},
		"a proxy that wants a login":   {slices.Concat(repeat(20, "a"), repeat(40, "bad")), 407, false, pauses},
		"an outage":                    {slices.Concat(repeat(20, "a"), repeat(40, "bad")), 503, false, pauses},
		"a hundred after one":          {append([]string{"a"}, many(100, 1000)...), 403, false, pauses},
		"one":                          {repeat(1000, "bad"), 404, false, ends},
		"one, and many records":        {append(repeat(1100, "bad"), "a"), 404, false, ends},
		"two, and many records":        {slices.Concat(repeat(600, "bad0"), repeat(600, "bad1"), repeat(10, "a")), 403, false, ends},
		"seven with their own token":   {many(7, 1000), 401, true, ends},
		"seven":                        {many(7, 1000), 403, false, ends},
		"a hundred":                    {many(100, 1000), 403, false, ends},
		"beside unusable items":        {repeat(20, "bad", ""), 404, false, ends},
		"the client's token":           {repeat(20, "bad"), 401, false, ends},
		"an outage from the start":     {repeat(20, "bad"), 503, false, pauses},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := sandbox.NewFake(t, sandbox.Refunds)
			fake.ScriptFunc(refusesBad(test.status, time.Millisecond)) // so that no response overtakes one to an earlier request
			items := table(test.accounts...)
			if test.own {
				items = with(items, "", own)
			}
			began := time.Now()
			counts, end := count(t, clientOver(t, fake.HTTPClient().Transport, refunds.WithMaxRetries(0)), items, refunds.BulkOptions{GiveUpAfter: time.Minute})
			took, sent, got := time.Since(began), len(fake.Requests()), goesOn
			switch {
			case end == nil && (counts[accepted] != len(fake.Refunds()) || counts[rejected]+counts[accepted] != len(test.accounts)):
				t.Errorf("%s: %v", name, counts)
			case end == nil && took > 400*time.Millisecond: // until a probe
				got = "waits"
			case errors.Is(end, refunds.ErrSuspended) && took >= time.Minute:
				got = pauses
			case end != nil && took < 10*time.Second:
				got = ends
			}
			if got != test.want || got != goesOn && sent > 100 {
				t.Errorf("%s: it %s after %v and %d requests, %v: %v", name, got, took, sent, counts, end)
			}
		})
	}
}

// If the setup is wrong, what was taken is not sent, and says what to correct. The next call
// finds out whether it was corrected.
func TestSubmitAllEndsWithAWrongSetUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := http.StatusForbidden
		s := &service{status: func(string) int { return status }}
		client := s.client(t)
		actions, end := map[refunds.Action]int{}, error(nil)
		for one, err := range client.SubmitAll(t.Context(), numbered(100), refunds.BulkOptions{}) {
			if end = err; err == nil {
				actions[one.Action()]++
			}
		}
		failed, _ := errors.AsType[*refunds.Error](end)
		if actions[fixSetup] != 100 || len(s.sent()) > 8 || !errors.Is(end, refunds.ErrForbidden) || errors.Is(end, refunds.ErrSuspended) || failed.Retryable() {
			t.Errorf("%v, %d sent: %v", actions, len(s.sent()), end)
		}
		began := time.Now()
		counts, end := count(t, client, numbered(100), refunds.BulkOptions{HoldFor: time.Hour, GiveUpAfter: -1, ReadAhead: true})
		if took := time.Since(began); took < time.Hour || end != nil || counts[notSent] == 0 {
			t.Errorf("it is not to give up, and ended after %v with %v: %v", took, counts, end)
		}
		s.change(func() { status = http.StatusOK })
		if counts, end = count(t, client, numbered(100), refunds.BulkOptions{}); counts[accepted] != 100 {
			t.Errorf("after the correction: %v, %v", counts, end)
		}
	})
}

// After an outage has ended, a refused account is no outage.
func TestSubmitAllFindsAnotherAccountAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := sandbox.NewFake(t, sandbox.Refunds)
		var mu sync.Mutex
		requests, refused := 0, time.Time{}
		fake.ScriptFunc(func(r sandbox.Request) sandbox.Fault {
			mu.Lock()
			defer mu.Unlock()
			switch requests++; {
			case requests == 1:
				return sandbox.Fault{Status: 429}
			case requests > 2 && r.Path == "/v1/old/refunds":
				if refused.IsZero() {
					refused = time.Now()
				}
				return sandbox.Fault{Status: 404}
			}
			return sandbox.Fault{}
		})
		counts, _ := count(t, clientOver(t, fake.HTTPClient().Transport), table(slices.Concat(repeat(20, "old"), repeat(20, "new"))...), refunds.BulkOptions{Concurrency: 1})
		if took := time.Since(refused); counts[accepted] != 21 || took > 400*time.Millisecond { // less than until a probe
			t.Errorf("%v, %v after the first refusal of the account", counts, took)
		}
	})
}

// In an outage and after it, a refused account changes nothing for the others: probes keep
// their distance, and no record is left unsent.
func TestSubmitAllOutlastsAnOutageBesideARefusedAccount(t *testing.T) {
	for name, test := range map[string]struct {
		accounts []string
		until    time.Duration // the outage begins after a second
		unknown  int           // at most
	}{
		"in the middle": {slices.Concat(repeat(90, "good"), repeat(300, "bad"), repeat(500, "good")), time.Minute, 40},
		"in turn":       {repeat(700, "good", "bad", "good"), 25 * time.Minute, 45},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake, began := sandbox.NewFake(t, sandbox.Refunds), time.Now()
			fake.ScriptFunc(func(r sandbox.Request) sandbox.Fault {
				switch since := time.Since(began); {
				case r.Path == "/v1/bad/refunds":
					return sandbox.Fault{Status: 403}
				case since > time.Second && since < test.until:
					return sandbox.Fault{Status: 503}
				}
				return sandbox.Fault{Delay: 100 * time.Millisecond}
			})
			counts, end := count(t, clientOver(t, fake.HTTPClient().Transport), table(test.accounts...), refunds.BulkOptions{})
			if end != nil || counts[unknown] < 5 || counts[unknown] > test.unknown || counts[notSent] > 0 {
				t.Errorf("%s: %v in %v: %v", name, counts, time.Since(began), end)
			}
		})
	}
}

// A pause because of refused accounts does not hold back a Submit to another account.
func TestSubmitToAnotherAccount(t *testing.T) {
	s := &service{}
	s.status = func(string) int {
		if strings.HasPrefix(s.arrived[len(s.arrived)-1].path, "/v1/bad") {
			return http.StatusForbidden
		}
		return http.StatusOK
	}
	client := s.client(t)
	var err error
	for range 3 {
		_, err = client.Submit(t.Context(), "bad", record())
	}
	if _, good := client.Submit(t.Context(), "good", record()); good != nil || !errors.Is(err, refunds.ErrSuspended) {
		t.Errorf("the refused account: %v; another one: %v", err, good)
	}
}

// Refusals that are faster than the first success do not end the submission before it.
func TestSubmitAllWaitsForWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := sandbox.NewFake(t, sandbox.Refunds)
		fake.ScriptFunc(func(r sandbox.Request) sandbox.Fault {
			if strings.HasPrefix(r.Path, "/v1/bad") {
				return sandbox.Fault{Status: http.StatusForbidden}
			}
			return sandbox.Fault{Delay: 2500 * time.Millisecond}
		})
		items := table(append([]string{"a"}, many(10, 10)...)...)
		began := time.Now()
		counts, end := count(t, clientOver(t, fake.HTTPClient().Transport, refunds.WithMaxRetries(0)), items, refunds.BulkOptions{})
		if took := time.Since(began); end != nil || counts[accepted] != 1 || counts[rejected] != 10 || took > 2*time.Minute {
			t.Errorf("%v after %v: %v", counts, took, end)
		}
	})
}

// A queue begins with messages of a closed account. Progress reports no pause while another account
// may work, because a consumer stops then, and it reports one soon if none does.
func TestSubmitAllReportsNoPauseForOneAccount(t *testing.T) {
	for _, test := range []struct {
		name     string
		accounts []string
		want     bool
	}{
		{"one that works comes later", slices.Concat(repeat(20, "bad"), repeat(50, "a")), false},
		{"one that works came before", slices.Concat(repeat(5, "a"), repeat(20, "bad"), repeat(5, "a")), false},
		{"several", slices.Concat(many(12, 40), repeat(5, "a")), false},
		{"no other", repeat(20, "bad"), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := sandbox.NewFake(t, sandbox.Refunds)
			fake.ScriptFunc(refusesBad(http.StatusNotFound, 10*time.Millisecond))
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			queue := func(yield func(refunds.Item) bool) {
				table(test.accounts...)(yield)
				<-ctx.Done()
			}
			paused, reason := false, ""
			o := refunds.BulkOptions{ReadAhead: true, GiveUpAfter: -1, Progress: func(p refunds.BulkProgress) {
				if paused = paused || p.Paused; p.Paused {
					reason = p.Reason
				}
				if p.Paused == p.PausedUntil.IsZero() {
					t.Errorf("%s: paused %v until %v", test.name, p.Paused, p.PausedUntil)
				}
			}}
			counts, _ := count(t, clientOver(t, fake.HTTPClient().Transport, refunds.WithMaxRetries(0)), queue, o)
			if paused != test.want || paused && reason != "not_found" || !paused && counts[accepted]+counts[rejected] != len(test.accounts) {
				t.Errorf("%s: paused %v with %q: %v", test.name, paused, reason, counts)
			}
		})
	}
}

// An account that has worked is closed, and a queue has a run of its messages. That is no pause while
// others work: a consumer would stop.
func TestSubmitAllReportsNoPauseForAnAccountThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := sandbox.NewFake(t, sandbox.Refunds)
		fake.ScriptFunc(func(r sandbox.Request) (fault sandbox.Fault) {
			if len(fake.Refunds()) >= 9 && strings.HasPrefix(r.Path, "/v1/closed") {
				fault.Status = http.StatusForbidden
			}
			return fault
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		accounts := slices.Concat(repeat(3, "a", "b", "closed"), repeat(40, "closed"), repeat(5, "a", "b"))
		queue := func(yield func(refunds.Item) bool) {
			for item := range table(accounts...) {
				if !yield(item) {
					return
				}
				time.Sleep(time.Second)
			}
			<-ctx.Done()
		}
		o := refunds.BulkOptions{ReadAhead: true, GiveUpAfter: -1, Progress: func(p refunds.BulkProgress) {
			if p.Paused {
				t.Errorf("a pause: %+v", p)
			}
		}}
		if counts, _ := count(t, clientOver(t, fake.HTTPClient().Transport), queue, o); counts[accepted] != 19 || counts[rejected] != 40 {
			t.Error(counts)
		}
	})
}
