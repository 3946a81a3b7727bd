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
	"sync"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/testkit"
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
	if s.Index < 0 {
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
