package outbox

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func (s *system) tell(n Notice) (d *Difference, err error) {
	n.AccountID, n.By = "acct", "a webhook"
	err = s.box.transact(s.t.Context(), func(tx session) (err error) {
		d, err = s.box.tell(s.t.Context(), tx, n)
		return err
	})
	return d, err
}

// TestTell: what a notice does in each state.
func TestTell(t *testing.T) {
	for _, test := range []struct {
		state  State
		age    time.Duration
		says   Verdict
		want   State
		differ string
		err    error
	}{
		{Unknown, 0, Recorded, Accepted, "", nil},
		{Sending, 0, Recorded, Accepted, "", nil},
		{Pending, 0, Recorded, Accepted, "", nil},
		{Accepted, 0, Recorded, Accepted, "", nil},
		{Rejected, 0, Recorded, Rejected, "rejected here, and a webhook says that the service has it", nil},
		{Unknown, time.Hour, NotRecorded, Pending, "", nil},
		{Unknown, 30 * time.Second, NotRecorded, Unknown, "", ErrTooEarly},
		{Sending, 0, NotRecorded, Sending, "", ErrTooEarly},
		{Pending, 0, NotRecorded, Pending, "", nil},
		{Accepted, time.Hour, NotRecorded, Accepted, "accepted here, and a webhook says: not recorded", nil},
		{Rejected, time.Hour, NotRecorded, Rejected, "", nil},
		{Unknown, time.Hour, Closed, Rejected, "", nil},
		{Unknown, 30 * time.Second, Closed, Unknown, "", ErrTooEarly},
		{Pending, 0, Closed, Rejected, "", nil},
		{Accepted, time.Hour, Closed, Accepted, "accepted here, and a webhook says: closed", nil},
	} {
		s := newSystem(t)
		s.enqueue(refund("a", 5))
		if test.state != Pending {
			s.set(`UPDATE outbox_refund SET state = $1, attempts = 1, sent_at = $2`, test.state, timeText(time.Now().Add(-test.age)))
		}
		for range 2 { // webhooks come twice
			d, err := s.tell(Notice{RefundID: "a", Verdict: test.says})
			if !errors.Is(err, test.err) || (d != nil) != (test.differ != "") || d != nil && (d.What != test.differ || d.Row != 1) {
				t.Errorf("%s, %s: %+v, %v", test.state, test.says, d, err)
			}
		}
		s.check(string(test.want))
		kept, err := s.box.Differences(t.Context())
		if err != nil || len(kept) != min(1, len(test.differ)) {
			t.Errorf("%s, %s: kept are %+v, %v", test.state, test.says, kept, err)
		}
		decided := ""
		if test.want != test.state {
			decided = string(test.says)
		} else if test.differ != "" {
			decided = contradicts
		}
		s.checkLog(decided)
	}
}

// TestTellAboutUpdates: with several records of a refund_id, a notice is about the open one, unless
// it may be about an accepted one.
func TestTellAboutUpdates(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5), refund("a", 6))
	s.set(`UPDATE outbox_refund SET state = 'accepted', attempts = 1 WHERE id = 1`)
	s.set(`UPDATE outbox_refund SET state = 'unknown', attempts = 1 WHERE id = 2`)
	if d, err := s.tell(Notice{RefundID: "a", Verdict: Recorded}); err != nil || d == nil || d.Row != 2 || !strings.Contains(d.What, "cannot tell them apart") {
		t.Errorf("%+v, %v", d, err)
	}
	for _, other := range []Notice{{Amount: new(int64(7))}, {Amount: new(int64(6)), Currency: "USD"}, {Currency: "USD"}} {
		other.RefundID, other.Verdict = "a", Recorded
		if d, err := s.tell(other); err != nil || d == nil || !strings.Contains(d.What, "differs") {
			t.Errorf("%s: %+v, %v", money(other.Amount, other.Currency), d, err)
		}
	}
	if d, err := s.tell(Notice{RefundID: "a", Verdict: Recorded, Amount: new(int64(5)), Currency: "EUR"}); err != nil || d != nil {
		t.Errorf("%+v, %v", d, err)
	}
	s.check("accepted unknown")
	if d, err := s.tell(Notice{RefundID: "a", Verdict: Recorded, Amount: new(int64(6)), Currency: "EUR"}); err != nil || d != nil {
		t.Errorf("%+v, %v", d, err)
	}
	s.check("accepted accepted")
}

// TestTellRefuses: a notice about nobody's refund, and notices that are none, change nothing.
func TestTellRefuses(t *testing.T) {
	s := newSystem(t)
	s.enqueue(refund("a", 5))
	if _, err := s.tell(Notice{RefundID: "b", Verdict: Recorded}); !errors.Is(err, ErrNoRefund) {
		t.Error(err)
	}
	for _, v := range []Verdict{"", Resubmit, Verdict(eventBegun)} {
		if _, err := s.tell(Notice{RefundID: "a", Verdict: v}); err == nil {
			t.Errorf("%q is told", v)
		}
	}
	if _, err := s.box.Tell(t.Context(), nil, Notice{AccountID: "acct", RefundID: "a", Verdict: Recorded}); err == nil {
		t.Error("nobody tells")
	}
	s.check("pending")
}
