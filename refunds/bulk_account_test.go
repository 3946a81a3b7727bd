package refunds_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

func repeat(n int, accounts ...string) []string { return slices.Repeat(accounts, n) }

// An account that the service refuses does not stop the others, wherever it stands in the
// input. If every account is refused, submission pauses.
func TestSubmitAllTellsAnAccountFromAnOutage(t *testing.T) {
	var one []string // after the other
	for i := range 30 {
		one = append(one, "a", fmt.Sprint("bad", i))
	}
	for name, test := range map[string]struct {
		accounts []string // those that begin with "bad" are refused
		status   int
		own      bool // the items have a token of their own
		pauses   bool
	}{
		"in the middle":              {slices.Concat(repeat(20, "a"), repeat(40, "bad"), repeat(20, "c")), 404, false, false},
		"forbidden":                  {slices.Concat(repeat(20, "a"), repeat(40, "bad"), repeat(20, "c")), 403, false, false},
		"in turn":                    {repeat(40, "a", "bad"), 404, false, false},
		"one by one":                 {one, 403, false, false},
		"first":                      {slices.Concat(repeat(500, "bad"), repeat(100, "a")), 404, false, false},
		"two of them":                {append(repeat(10, "bad1", "bad2", "bad1", "bad2", "bad2", "bad1"), "c"), 404, false, false},
		"with its own token":         {slices.Concat(repeat(20, "a"), repeat(40, "bad")), 401, true, false},
		"with the client's token":    {slices.Concat(repeat(20, "a"), repeat(40, "bad")), 401, false, true},
		"a proxy that wants a login": {slices.Concat(repeat(20, "a"), repeat(40, "bad")), 407, false, true},
		"an outage":                  {slices.Concat(repeat(20, "a"), repeat(40, "bad")), 503, false, true},
		"alone":                      {repeat(20, "bad"), 404, false, true},
		"two alone":                  {repeat(20, "bad1", "bad2"), 404, false, true},
		"all of many":                {strings.Fields("bad1 bad2 bad3 bad4 bad5 bad6 bad7 bad8 bad9 bad10 bad11"), 404, false, true},
		"beside unusable items":      {repeat(20, "bad", ""), 404, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := refundstest.NewServer(t)
			fake.ScriptFunc(func(r refundstest.Request) refundstest.Fault {
				if strings.HasPrefix(r.Path, "/v1/bad") {
					return refundstest.Fault{Status: test.status}
				}
				return refundstest.Fault{}
			})
			items := with(table(test.accounts...), func(string) bool { return test.own }, refunds.WithTokenSource(refunds.StaticToken("token")))
			o := refunds.BulkOptions{GiveUpAfter: time.Minute}
			if name == "one by one" {
				o.Concurrency = 1
			}
			began := time.Now()
			counts, _ := count(t, fake.Client(refunds.WithMaxRetries(0)), items, o)
			paused := time.Since(began) > 0
			if paused != test.pauses {
				t.Errorf("%s: paused %v, %v", name, paused, counts)
			}
			if good := len(fake.Recorded()); !paused && (counts[rejected] != len(test.accounts)-good || counts[refunds.OutcomeAccepted] != good) {
				t.Errorf("%s: %d recorded of %d, %v", name, good, len(test.accounts), counts)
			}
		})
	}
}

// After an outage has ended, a refused account is no outage.
func TestSubmitAllFindsAnotherAccountAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := refundstest.NewServer(t)
		var mu sync.Mutex
		requests, refused := 0, time.Time{}
		fake.ScriptFunc(func(r refundstest.Request) refundstest.Fault {
			mu.Lock()
			defer mu.Unlock()
			switch requests++; {
			case requests == 1:
				return refundstest.Fault{Status: 429}
			case requests > 2 && r.Path == "/v1/old/refunds":
				if refused.IsZero() {
					refused = time.Now()
				}
				return refundstest.Fault{Status: 404}
			}
			return refundstest.Fault{}
		})
		counts, _ := count(t, fake.Client(), table(slices.Concat(repeat(20, "old"), repeat(20, "new"))...), refunds.BulkOptions{})
		if took := time.Since(refused); counts[refunds.OutcomeAccepted] != 21 || took > 400*time.Millisecond { // less than until a probe
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
			fake, began := refundstest.NewServer(t), time.Now()
			fake.ScriptFunc(func(r refundstest.Request) refundstest.Fault {
				switch since := time.Since(began); {
				case r.Path == "/v1/bad/refunds":
					return refundstest.Fault{Status: 403}
				case since > time.Second && since < test.until:
					return refundstest.Fault{Status: 503}
				}
				return refundstest.Fault{HeaderDelay: 100 * time.Millisecond}
			})
			counts, end := count(t, fake.Client(), table(test.accounts...), refunds.BulkOptions{})
			if end != nil || counts[unknown] < 5 || counts[unknown] > test.unknown || counts[notSent] > 0 {
				t.Errorf("%s: %v in %v: %v", name, counts, time.Since(began), end)
			}
		})
	}
}

// If every account is refused, probes keep their distance, and the rest is not sent.
func TestSubmitAllGivesUpWhereAllAccountsAreRefused(t *testing.T) {
	for _, accounts := range []int{5, 10} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{
				latency: func(string) time.Duration { return 50 * time.Millisecond },
				status:  func(string) int { return http.StatusForbidden },
			}
			var names []string
			for i := range 1000 {
				names = append(names, fmt.Sprint(i%accounts))
			}
			counts, end := count(t, s.client(t), table(names...), refunds.BulkOptions{HoldFor: -1})
			if sent := len(s.ids()); sent > 100 || counts[notSent] > 1000-sent || time.Since(s.began) < 30*time.Minute || !errors.Is(end, refunds.ErrSuspended) {
				t.Errorf("%d accounts: %d sent, %v in %v: %v", accounts, sent, counts, time.Since(s.began), end)
			}
		})
	}
}
