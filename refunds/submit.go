package refunds

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/http"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/transport"
)

// A Receipt shows that the service accepted a refund record.
type Receipt struct {
	StatusCode  int    // 200 to 299
	RequestID   string // from X-Request-Id, X-Correlation-Id or Request-Id; "": none
	ContentType string // of Body
	Body        []byte // up to 64 KiB after decompression; its format is not documented
	BodyErr     error  // why Body is incomplete; the refund is accepted all the same
	Attempts    int    // requests handed to the network

	header func() http.Header // a func, because fmt prints only its address
}

// Header returns the response header. Do not change it.
func (r *Receipt) Header() http.Header {
	if r.header == nil {
		return nil
	}
	return r.header()
}

// Format prints the status alone, under any verb.
func (r Receipt) Format(state fmt.State, verb rune) {
	fault.Format(state, verb, fmt.Sprintf("refund accepted (status %d)", r.StatusCode))
}

// MarshalText returns the text. To keep a receipt, store its fields.
func (r Receipt) MarshalText() ([]byte, error) { return fmt.Append(nil, r), nil }

// LogValue logs the status and the request id.
func (r Receipt) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("status", r.StatusCode), slog.String("request_id", fault.Loggable(r.RequestID)))
}

// Submit submits one refund record. A nil error means that the service accepted it. Every error is an
// [*Error], and matches exactly one of [ErrNotSent], [ErrRejected] and [ErrOutcomeUnknown], besides its
// conditions, such as [ErrRateLimited]. [ActionOf] says what to do.
//
// accountID is the {account_id} of the path, sent as one escaped segment. An empty one, "." or ".." between
// slashes, and text that is not valid UTF-8 are refused with [ErrInvalidArgument]. Do not change the record
// during the call.
//
// The call ends at the deadline of ctx, or after 90 seconds if ctx has none. If ctx ends after the first byte
// of the request and before the status of the response, the outcome is unknown, so choose a generous
// deadline.
func (c *Client) Submit(ctx context.Context, accountID string, r *Refund, opts ...CallOption) (*Receipt, error) {
	settings, refusal := c.settings(opts)
	e, err := encode(accountID, r)
	if err := cmp.Or(refusal, err); err != nil {
		return nil, e.failure(err)
	}
	defer c.logState()
	receipt, err := c.send(ctx, nil, &e, settings)
	return receipt, err
}

const (
	operation = "submit"
	submitAll = "submit all"
	route     = "/v1/{account_id}/refunds"
)

var seed = maphash.MakeSeed()

// A refundKey names a refund. It need not be unique: a refund may be submitted again.
type refundKey struct{ accountID, refundID string }

// An encodedRefund is ready to be sent.
type encodedRefund struct {
	refundKey
	path     string
	body     []byte
	attempts int  // attempts so far, in a bulk call
	again    bool // it was held back or not recorded before
	before   int  // attempts before this call that were proven not recorded, in a bulk call
}

// encode makes a refund ready to be sent, or returns why it cannot be sent unchanged.
func encode(accountID string, r *Refund) (e encodedRefund, err error) {
	e.accountID = accountID
	if r != nil {
		e.refundID = r.RefundID
	}
	account, refusal := transport.Segment("account id", accountID)
	e.path = "/v1/" + account + "/refunds"
	e.body, err = r.encode()
	return e, cmp.Or(refusal, err)
}

// failure is the error of a refund without an attempt that decides its outcome. The refund
// was not sent, or its outcome is unknown if an attempt was handed to the network.
func (e *encodedRefund) failure(err error) *Error {
	outcome := OutcomeNotSent
	if e.attempts > 0 {
		outcome = OutcomeUnknown
	}
	return &Error{Operation: operation, Attempts: e.before + e.attempts, Outcome: outcome, Err: err}
}

// send makes the call. A bulk call passes requestCtx, which bounds the request instead of
// ctx, and makes a single attempt unless another one helps at once.
func (c *Client) send(ctx, requestCtx context.Context, e *encodedRefund, settings *transport.Settings) (*Receipt, error) {
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
		Door:           c.window,
		Account:        e.accountID,
		Of:             maphash.Comparable(seed, e.refundKey),
		Again:          e.again,
		Bulk:           requestCtx != nil,
		RequestContext: requestCtx,
	}
	if requestCtx != nil {
		call.Observe = func(attempts int, _ *fault.Failure) { e.attempts = attempts }
	}
	result := c.core.Do(ctx, call, settings)
	result.Attempts += e.before
	if result.Failure != nil {
		failed := newError(&result)
		failed.Attempts = result.Attempts
		return nil, failed
	}
	return newReceipt(&result), nil
}

// identifiers are the ids of the caller in the path and in the record.
func (e *encodedRefund) identifiers() []string {
	var r Refund
	d := json.NewDecoder(bytes.NewReader(e.body))
	d.UseNumber()
	_ = d.Decode(&r) // cannot fail: the body was encoded from a Refund
	a := &r.AdditionalData
	ids := []string{e.accountID, r.RefundID, r.TransactionID, r.TransactionOrderID, a.MerchantAccountID, a.OrderID, a.AcquirerReferenceNumber, a.Description}
	return appendTexts(ids, a.Metadata)
}

// appendTexts appends the names and values in free-form metadata, at any depth.
func appendTexts(texts []string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			texts = appendTexts(append(texts, name), member)
		}
	case []any:
		for _, element := range v {
			texts = appendTexts(texts, element)
		}
	case string:
		texts = append(texts, v)
	case json.Number:
		texts = append(texts, v.String())
	}
	return texts
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
		header:      func() http.Header { return header },
	}
}
