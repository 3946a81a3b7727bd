package faults

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/proof/testkit/options"
	"github.com/carddata/carddata-go/internal/transport"
	"github.com/carddata/carddata-go/refunds"
)

func refundOf(i int) *refunds.Refund {
	amount := int64(100 + i)
	return &refunds.Refund{RefundID: fmt.Sprintf("rf_%d", i), Amount: &amount, Currency: "USD"}
}

const accountID = "acct/7"

func (w *world) submit(client *refunds.Client, name string, p patience, refund *refunds.Refund) error {
	ctx, c, stop := w.call(name, p, 90*time.Second)
	defer stop()
	var receipt *refunds.Receipt
	var err error
	if !c.guard(func() { receipt, err = client.Submit(ctx, accountID, refund) }) {
		return errThrown
	}
	attempts := attemptsOf(err)
	if err == nil {
		attempts = receipt.Attempts
	}
	c.returned(err, attempts)
	w.arrive()
	checkOutcome(c, refund, err)
	return err
}

func (w *world) refundClient() *refunds.Client {
	opts := options.For[refunds.Option](w.options())
	if w.settings.resubmit {
		opts = append(opts, refunds.WithResubmit())
	}
	if w.settings.vouched {
		opts = append(opts, refunds.WithRefusals(vouched...))
	}
	if w.settings.ownTransport() {
		own := &http.Client{Transport: &transport.Simulation{Dial: w.network.dial, Jitter: w.jitter}}
		opts = append(opts[1:], refunds.WithHTTPClient(own), refunds.WithTransport(func(base http.RoundTripper) http.RoundTripper {
			w.wire.base = base
			return w.wire
		}))
	}
	return made(refunds.NewClient(baseURL, opts...))
}

// ownTransport tells whether refunds go over the library's own transport, which dials
// ahead. A transport of the caller's proves nothing of what it has sent.
func (s settings) ownTransport() bool { return !s.http2 && !s.opaque }

// arrive lets what is on its way to the service arrive.
func (w *world) arrive() { time.Sleep(time.Millisecond) }

// checkOutcome compares what a caller was told of a refund with the record.
func checkOutcome(c *call, refund *refunds.Refund, err error) {
	w := c.w
	recorded := w.service.records(refund)
	told := "accepted"
	if err != nil {
		told = checkRefundError(c, err)
	}
	switch {
	case told == "unknown" && recorded > 0:
		w.count("refund unknown, recorded")
	case told == "unknown":
		w.count("refund unknown, not recorded")
	case (told == "accepted") != (recorded > 0):
		w.violate(outcome, "%s: reported as %s, recorded %d times", c, told, recorded)
	default:
		w.count("refund " + told)
	}
}

// checkRefundError returns the outcome that an error states, once.
func checkRefundError(c *call, err error) (told string) {
	matched := 0
	for text, condition := range map[string]error{
		"not sent": refunds.ErrNotSent, "rejected": refunds.ErrRejected, "unknown": refunds.ErrOutcomeUnknown,
	} {
		if errors.Is(err, condition) {
			told = text
			matched++
		}
	}
	e, ok := errors.AsType[*refunds.Error](err)
	if ok && told == "unknown" && e.StatusCode == 0 && e.Evidence.Traced && e.Evidence.BytesWritten == 0 {
		c.w.violate(outcome, "%s: reported as unknown, and no byte left", c)
	}
	if !ok || matched != 1 || e.Outcome.String() != told || !hasCondition(e) && !c.isThrown(err) {
		c.w.violate(untyped, "%s: %T with %d outcomes: %v", c, err, matched, err)
	}
	return told
}

// bodyOf is a refund as it is sent.
func bodyOf(refund *refunds.Refund) string {
	body, err := json.Marshal(refund)
	if err != nil {
		panic(err)
	}
	return string(body)
}

// record keeps a refund, as it came.
func (s *service) record(r *http.Request, body []byte) {
	var refund refunds.Refund
	err := json.Unmarshal(body, &refund)
	s.mu.Lock()
	defer s.mu.Unlock()
	if account := cmp.Or(s.accounts[string(body)], accountID); err != nil || refund.Amount == nil || r.URL.Path != "/base/v1/"+account+"/refunds" {
		defer s.w.violate(unreachable, "a refund at %s: %v", r.URL.Path, err)
		return
	}
	if s.w.settings.resubmit && s.recorded[string(body)] > 0 {
		return
	}
	s.recorded[string(body)]++
}

// assign tells the service the account of a refund that is to come.
func (s *service) assign(body, account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts[body] = account
}

// records is how often a refund was recorded.
func (s *service) records(refund *refunds.Refund) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recorded[bodyOf(refund)]
}
