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

	"github.com/jarcoal/httpmock"
)

const (
	unknown, notSent, rejected, accepted = refunds.OutcomeUnknown, refunds.OutcomeNotSent, refunds.OutcomeRejected, refunds.OutcomeAccepted
	find, resubmit, correct, fixSetup    = refunds.ActionFindOut, refunds.ActionResubmit, refunds.ActionCorrect, refunds.ActionFixSetup
)

const path = "/v1/acct-1/refunds"

func newMock(answers ...httpmock.Responder) *testkit.Mock {
	return testkit.NewMock("POST", testkit.Base+path, answers...)
}

// newClient returns a client of the mock that does not wait.
func newClient(t testing.TB, mock *testkit.Mock, opts ...refunds.Option) *refunds.Client {
	t.Helper()
	return clientOver(t, mock, append([]refunds.Option{refunds.WithRetryWait(0, 0)}, opts...)...)
}

func clientOver(t testing.TB, network http.RoundTripper, opts ...refunds.Option) *refunds.Client {
	t.Helper()
	client, err := refunds.NewClient(testkit.Base, append([]refunds.Option{refunds.WithHTTPClient(&http.Client{Transport: network})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func record() *refunds.Refund {
	return &refunds.Refund{RefundID: "rf-canary", Amount: new(int64(10150)), Currency: "USD"}
}

// submit sends a record to a service with the answers.
func submit(t testing.TB, r *refunds.Refund, answers ...httpmock.Responder) (*testkit.Mock, *refunds.Receipt, error) {
	t.Helper()
	mock := newMock(answers...)
	receipt, err := newClient(t, mock).Submit(t.Context(), "acct-1", r)
	return mock, receipt, err
}

// failed is the error of a submission, which matches exactly one outcome.
func failed(t testing.TB, receipt *refunds.Receipt, err error) *refunds.Error {
	t.Helper()
	failed, ok := errors.AsType[*refunds.Error](err)
	if receipt != nil || !ok {
		t.Fatalf("want nothing and an *Error, got %v and %T %v", receipt, err, err)
	}
	if n := outcomesOf(err); n != 1 {
		t.Errorf("%v matches %d outcomes", err, n)
	}
	return failed
}

// outcomesOf returns how many outcomes an error matches.
func outcomesOf(err error) (n int) {
	for _, condition := range []error{refunds.ErrNotSent, refunds.ErrRejected, refunds.ErrOutcomeUnknown} {
		if errors.Is(err, condition) {
			n++
		}
	}
	return n
}

// A service answers refunds without a network, and keeps what arrived. Without functions it
// accepts at once. Its 429 is that of a limiter. It calls its functions under a lock. Once it has a client, they and what they
// read change only in change.
type service struct {
	latency func(id string) time.Duration
	status  func(id string) int // once the latency is over

	mu      sync.Mutex
	began   time.Time
	arrived []arrival
}

type arrival struct {
	path, id string
	at       time.Duration
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	id := refundID(r)
	r.Body.Close()
	if strings.HasPrefix(id, "warm_") {
		return testkit.Answer(http.StatusOK, "{}")(r)
	}
	var latency time.Duration
	s.change(func() {
		s.arrived = append(s.arrived, arrival{r.URL.Path, id, time.Since(s.began)})
		if s.latency != nil {
			latency = s.latency(id)
		}
	})
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	}
	status := http.StatusOK
	s.change(func() {
		if s.status != nil {
			status = s.status(id)
		}
	})
	if status == http.StatusTooManyRequests {
		return testkit.Limited(r)
	}
	return testkit.Answer(status, "{}")(r)
}

// change changes what the service does or keeps.
func (s *service) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// sent returns what arrived.
func (s *service) sent() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.arrived)
}

func (s *service) ids() []string {
	var ids []string
	for _, a := range s.sent() {
		ids = append(ids, a.id)
	}
	return ids
}

// A retry waits a nanosecond: timers that fire at once can crash the race detector in a bubble,
// golang/go#78156.
func (s *service) client(t testing.TB, opts ...refunds.Option) *refunds.Client {
	t.Helper()
	s.began = time.Now()
	return clientOver(t, s, append([]refunds.Option{refunds.WithRetryWait(1, 1)}, opts...)...)
}

// warmClient is a client that has sent enough to have 64 requests in flight at once.
func (s *service) warmClient(t testing.TB, opts ...refunds.Option) *refunds.Client {
	t.Helper()
	client := s.client(t, opts...)
	ids := make([]string, 300)
	for i := range ids {
		ids[i] = fmt.Sprint("warm_", i)
	}
	if counts, end := count(t, client, named(ids...), refunds.BulkOptions{Concurrency: 64}); counts[accepted] != len(ids) {
		t.Fatal(counts, end)
	}
	s.change(func() { s.began = time.Now() })
	return client
}

// named yields refunds of one account with the ids.
func named(ids ...string) iter.Seq[refunds.Item] {
	records := make([]*refunds.Refund, len(ids))
	for i, id := range ids {
		records[i] = &refunds.Refund{RefundID: id}
	}
	return refunds.Items("acct", slices.Values(records))
}

// numbered yields n refunds of one account, rf_0 and so on.
func numbered(n int) iter.Seq[refunds.Item] { return table(slices.Repeat([]string{"acct"}, n)...) }

// table yields one refund for each account that is named, in order, with rf_0 and so on.
func table(accounts ...string) iter.Seq[refunds.Item] {
	return func(yield func(refunds.Item) bool) {
		for i, account := range accounts {
			if !yield(refunds.Item{AccountID: account, Refund: &refunds.Refund{RefundID: fmt.Sprint("rf_", i)}}) {
				return
			}
		}
	}
}

// with gives the items of an account the options; "" stands for all accounts.
func with(items iter.Seq[refunds.Item], account string, opts ...refunds.CallOption) iter.Seq[refunds.Item] {
	return func(yield func(refunds.Item) bool) {
		for item := range items {
			if account == "" || item.AccountID == account {
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

type limiterFunc func(context.Context) error

func (f limiterFunc) Wait(ctx context.Context) error { return f(ctx) }

// refusal is a limiter that fails.
func refusal(err error) limiterFunc { return func(context.Context) error { return err } }

func repeat(n int, accounts ...string) []string { return slices.Repeat(accounts, n) }
