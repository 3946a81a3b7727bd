package refunds

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/transport"
)

// A Receipt shows that the service accepted a refund record. Neither the body nor the
// status codes of the response are documented: the status decides, and the body is kept
// unchanged.
type Receipt struct {
	StatusCode  int       // 200 to 299
	RequestID   string    // from X-Request-Id, X-Correlation-Id or Request-Id, to quote to the service's support; "" if none
	ContentType string    // Content-Type of Body; "" if the service sent none
	Body        []byte    // response body, up to WithMaxResponseBytes; its format is not documented
	BodyErr     error     // why Body is incomplete or unreadable; the refund is accepted nevertheless
	Attempts    int       // requests handed to the network
	AcceptedAt  time.Time // when the response had been read, by this machine's clock

	header func() http.Header // of which fmt prints an address
}

// Header returns the response header, for example to read quotas, Deprecation or
// Location. It is nil in a Receipt that you made yourself. Do not change it. It is never
// printed.
func (r *Receipt) Header() http.Header {
	if r.header == nil {
		return nil
	}
	return r.header()
}

// Format prints the status alone, whatever the verb.
func (r Receipt) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, fmt.Sprintf("refund accepted (status %d)", r.StatusCode))
}

// LogValue logs the status and the request id.
func (r Receipt) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("status", r.StatusCode), slog.String("request_id", transport.Loggable(r.RequestID)))
}

// Submit submits one refund record. It reports what became of the refund, or that this is
// unknown.
//
// A nil error means that the service accepted the refund: the response had a 2xx status
// and was neither an HTML page nor the documented error object. Every error is an
// [*OutcomeError] and matches exactly one of [ErrNotSent], [ErrRejected] and
// [ErrOutcomeUnknown]. It wraps an [*Error] with the conditions, such as
// [ErrRateLimited].
//
// Submit retries only if the refund cannot have been recorded: see Retries in the package
// comment. It returns every other failure at once.
//
// accountID is the {account_id} of the path. Its format is not documented; it is sent as
// one escaped path segment, and must not be empty, "." or "..". The record is encoded
// once, before the first attempt: do not change it during the call. Text that is not
// valid UTF-8 is refused, because encoding would change it. A refused argument matches
// [ErrInvalidArgument] and ErrNotSent.
//
// The call ends at the deadline of ctx, or after 90 seconds if ctx has none. If ctx ends
// while the request is in flight, the outcome is unknown, so choose a generous deadline.
func (c *Client) Submit(ctx context.Context, accountID string, r *Refund, opts ...Option) (*Receipt, error) {
	e, err := c.encode(accountID, r)
	if err != nil {
		return nil, e.failure(err)
	}
	return c.send(ctx, nil, &e, opts)
}

const (
	operation = "submit"
	route     = "/v1/{account_id}/refunds"
)

// A refundKey names a refund. It need not be unique: a refund may be submitted again.
type refundKey struct{ accountID, refundID string }

// An encodedRefund is ready to be sent.
type encodedRefund struct {
	refundKey
	path     string
	body     []byte
	attempts int // so far, of one of many
}

// encode makes a refund ready to be sent, or says why it cannot be sent as it is.
func (c *Client) encode(accountID string, r *Refund) (e encodedRefund, err error) {
	e.accountID = accountID
	if r != nil {
		e.refundID = r.RefundID
	}
	account, refusal := transport.Segment("account id", accountID)
	e.path = "/v1/" + account + "/refunds"
	e.body, err = r.encode()
	return e, cmp.Or(c.check(), refusal, err)
}

func (c *Client) check() error {
	if c == nil || c.core == nil {
		return transport.Invalid("the client was not made by NewClient")
	}
	return nil
}

// failure is the error of a refund whose outcome no attempt tells. It was not sent; once
// an attempt was handed to the network, that is not known.
func (e *encodedRefund) failure(err error) error {
	outcome := OutcomeNotSent
	if e.attempts > 0 {
		outcome = OutcomeUnknown
	}
	return &OutcomeError{Outcome: outcome, RefundID: e.refundID, Attempts: e.attempts,
		Err: &Error{Operation: operation, Attempts: e.attempts, Err: transport.WithOutcome(err, transport.Outcome(outcome))}}
}

// send makes the call. One of many has a requestCtx, which ends the request in place
// of ctx, and may queue for the limiter as long as that takes.
func (c *Client) send(ctx, requestCtx context.Context, e *encodedRefund, opts []Option) (*Receipt, error) {
	call := &transport.Call{
		Operation: operation,
		Method:    http.MethodPost,
		Route:     route,
		Path:      e.path,
		Headers: func(h http.Header) {
			transport.JSONHeaders(h)
			h["Accept-Encoding"] = []string{"identity"}
		},
		Body:           e.body,
		Write:          true,
		Identifiers:    e.identifiers,
		Bulk:           requestCtx != nil,
		RequestContext: requestCtx,
	}
	if requestCtx != nil {
		call.Observe = func(attempts int, _ *transport.Failure) { e.attempts = attempts }
	}
	result := c.core.Do(ctx, call, opts)
	if result.Failure != nil {
		return nil, &OutcomeError{
			Outcome:  Outcome(result.Outcome),
			RefundID: e.refundID,
			Attempts: result.Attempts,
			Evidence: Evidence(result.Evidence),
			Err:      (*Error)(result.Failure),
		}
	}
	return newReceipt(&result), nil
}

// identifiers are the caller's own in the path and in the record.
func (e *encodedRefund) identifiers() []string {
	var r Refund
	_ = json.Unmarshal(e.body, &r) // it was encoded from one
	a := &r.AdditionalData
	return []string{e.accountID, r.RefundID, r.TransactionID, r.TransactionOrderID, a.MerchantAccountID, a.OrderID, a.AcquirerReferenceNumber}
}

func newReceipt(r *transport.Result) *Receipt {
	header := r.Header
	return &Receipt{
		StatusCode:  r.StatusCode,
		RequestID:   r.RequestID,
		ContentType: r.Header.Get("Content-Type"),
		Body:        r.Body,
		BodyErr:     r.BodyErr,
		Attempts:    r.Attempts,
		AcceptedAt:  r.Evidence.Ended,
		header:      func() http.Header { return header },
	}
}
