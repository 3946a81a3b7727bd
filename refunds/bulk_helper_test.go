package refunds_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// A service answers refunds without a network, and keeps what arrived. Without
// functions it accepts at once.
type service struct {
	latency func(id string) time.Duration
	status  func(id string) int

	mu      sync.Mutex
	began   time.Time
	arrived []arrival
	flying  int
}

type arrival struct {
	id string
	at time.Duration
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	id := refundID(r)
	r.Body.Close()
	if strings.HasPrefix(id, "warm_") {
		return testkit.Answer(http.StatusOK, "{}")(r)
	}
	s.mu.Lock()
	s.arrived = append(s.arrived, arrival{id, time.Since(s.began)})
	s.flying++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flying--
	}()
	status := http.StatusOK
	if s.latency != nil {
		select {
		case <-time.After(s.latency(id)):
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	}
	if s.status != nil {
		status = s.status(id)
	}
	return testkit.Answer(status, "{}")(r)
}

func (s *service) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, a := range s.arrived {
		ids = append(ids, a.id)
	}
	return ids
}

func (s *service) client(t testing.TB, opts ...refunds.Option) *refunds.Client {
	t.Helper()
	s.began = time.Now()
	return clientOver(t, s, append([]refunds.Option{refunds.WithRetryWait(0, 0)}, opts...)...)
}

// warmClient is a client that has sent enough to have 64 requests in flight at once.
func (s *service) warmClient(t testing.TB, opts ...refunds.Option) *refunds.Client {
	t.Helper()
	client := s.client(t, opts...)
	warm(t, client)
	s.began = time.Now()
	return client
}

func warm(t testing.TB, client *refunds.Client) {
	t.Helper()
	records := func(yield func(*refunds.Refund) bool) {
		for i := range 300 {
			if !yield(&refunds.Refund{RefundID: fmt.Sprint("warm_", i)}) {
				return
			}
		}
	}
	for s, err := range client.SubmitAll(t.Context(), refunds.Items("acct", records), refunds.BulkOptions{Concurrency: 64}) {
		if err != nil || s.Err != nil {
			t.Fatal(err, s.Err)
		}
	}
}

func clientOver(t testing.TB, network http.RoundTripper, opts ...refunds.Option) *refunds.Client {
	t.Helper()
	client, err := refunds.NewClient(testkit.Base, append([]refunds.Option{refunds.WithHTTPClient(&http.Client{Transport: network})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// named yields refunds with the ids.
func named(ids ...string) iter.Seq[*refunds.Refund] {
	return func(yield func(*refunds.Refund) bool) {
		for _, id := range ids {
			if !yield(&refunds.Refund{RefundID: id}) {
				return
			}
		}
	}
}

// numbered yields n refunds, rf_0 and so on.
func numbered(n int) iter.Seq[*refunds.Refund] {
	return func(yield func(*refunds.Refund) bool) {
		for i := range n {
			if !yield(&refunds.Refund{RefundID: fmt.Sprint("rf_", i)}) {
				return
			}
		}
	}
}

// summary is a result in short.
func summary(s refunds.Submission, err error) string {
	text := fmt.Sprint(s.Index, " ", s.RefundID, " ", s.Outcome)
	if s == (refunds.Submission{}) {
		text = "the end"
	}
	if errors.Is(err, context.Canceled) {
		text += ", canceled"
	}
	return text
}

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

// with gives each item the options, if choose wants that for its account.
func with(items iter.Seq[refunds.Item], choose func(account string) bool, opts ...refunds.Option) iter.Seq[refunds.Item] {
	return func(yield func(refunds.Item) bool) {
		for item := range items {
			if choose(item.AccountID) {
				item.Options = opts
			}
			if !yield(item) {
				return
			}
		}
	}
}

// count submits the items and counts the results by outcome. end is the error that ended the
// submission early.
func count(t testing.TB, client *refunds.Client, items iter.Seq[refunds.Item], o refunds.BulkOptions) (counts map[refunds.Outcome]int, end error) {
	t.Helper()
	counts = map[refunds.Outcome]int{}
	for s, err := range client.SubmitAll(t.Context(), items, o) {
		if end = err; err == nil {
			counts[s.Outcome]++
		}
	}
	return counts, end
}

// heardOf makes a submission that panics. It returns the outcomes that the loop or Abandoned
// got, by refund_id.
func heardOf(ctx context.Context, t *testing.T, c *refunds.Client, items iter.Seq[refunds.Item], o refunds.BulkOptions) (heard map[string]refunds.Outcome, panicked any) {
	t.Helper()
	heard = map[string]refunds.Outcome{}
	hear := func(s refunds.Submission) {
		if _, twice := heard[s.RefundID]; twice {
			t.Errorf("%s has two results", s.RefundID)
		}
		heard[s.RefundID] = s.Outcome
	}
	abandoned := o.Abandoned
	o.Abandoned = func(s refunds.Submission) {
		hear(s)
		if abandoned != nil {
			abandoned(s)
		}
	}
	defer func() { panicked = recover() }()
	for s, end := range c.SubmitAll(ctx, items, o) {
		if end == nil {
			hear(s)
		}
	}
	return heard, nil
}

// refundID reads the id, and leaves the request as it was.
func refundID(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(body))
	var refund refunds.Refund
	if err := json.Unmarshal(body, &refund); err != nil {
		panic(err)
	}
	return refund.RefundID
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// outcomesOf returns which outcomes an error matches.
func outcomesOf(err error) (matched []refunds.Outcome) {
	for outcome, condition := range map[refunds.Outcome]error{refunds.OutcomeNotSent: refunds.ErrNotSent,
		refunds.OutcomeRejected: refunds.ErrRejected, refunds.OutcomeUnknown: refunds.ErrOutcomeUnknown} {
		if errors.Is(err, condition) {
			matched = append(matched, outcome)
		}
	}
	return matched
}
