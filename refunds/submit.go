package refunds

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/transport"
)

// A Receipt is the service's acceptance of a refund record. Response body and
// status codes are not documented, so that the status is the receipt, and the
// body is kept as it came.
type Receipt struct {
	StatusCode  int    // 200 to 299
	RequestID   string // to quote to the service's support; "" if it gave none
	ContentType string // of Body, in the service's words
	Body        []byte // at most WithMaxResponseBytes
	BodyErr     error  // why Body is incomplete or unreadable; the refund is accepted all the same
	Attempts    int    // requests handed to the network
	AcceptedAt  time.Time
}

// Format prints the status, whatever the verb, and not the body.
func (r Receipt) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, fmt.Sprintf("refund accepted (status %d)", r.StatusCode))
}

// LogValue logs the status and the request id.
func (r Receipt) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("status", r.StatusCode), slog.String("request_id", transport.Printable(r.RequestID)))
}

// Submit sends one refund record (interface, endpoint 2), and tells for certain
// what became of it, or that this cannot be known.
//
// A nil error means that the service accepted it: it answered with a 2xx status,
// and not with an HTML page. Every error is an [*OutcomeError] and matches exactly
// one of [ErrNotSent], [ErrRejected] and [ErrOutcomeUnknown]; the [*Error] with
// the conditions, such as [ErrRateLimited], is inside it.
//
// It repeats the submission by itself only where the refund cannot have been
// recorded: when it is proven that no byte of it left, and after 421, 425, 429,
// and 401 with another token. Everything else is returned at once, unless
// [WithResubmit] is given.
//
// accountID is the {account_id} of the path; it travels as one escaped segment,
// and is refused when it cannot. The record is encoded once, before the first
// attempt: changing it during the call is a data race, and changing it afterwards
// has no effect. Strings that are not valid UTF-8 are refused, because encoding
// would change them.
//
// It ends by the deadline of ctx, or after 90 seconds if ctx has none. When ctx
// ends while the request is on the wire the outcome is unknown: give it time.
func (c *Client) Submit(ctx context.Context, accountID string, r *Refund, opts ...Option) (*Receipt, error) {
	path, err := c.path(accountID)
	if err != nil {
		return nil, notSent(r.id(), err)
	}
	body, err := r.encode()
	if err != nil {
		return nil, notSent(r.id(), err)
	}
	return c.send(ctx, nil, &outgoing{r.id(), path, body}, opts)
}

const operation = "submit"

// An outgoing refund is ready to be sent.
type outgoing struct {
	refundID string
	path     string
	body     []byte
}

// path is where an account's refunds go.
func (c *Client) path(accountID string) (string, error) {
	if c == nil || c.core == nil {
		return "", transport.Invalid("the client was not made by NewClient")
	}
	account, err := transport.Segment("account id", accountID)
	return "/v1/" + account + "/refunds", err
}

// notSent is the error of a refund that was not handed to the network.
func notSent(refundID string, err error) error {
	return &OutcomeError{Outcome: OutcomeNotSent, RefundID: refundID, Err: &Error{Operation: operation, Err: err}}
}

// send makes the call. With wire it is one of many: it may queue for the limiter
// as long as that takes, and wire ends its request instead of ctx.
func (c *Client) send(ctx, wire context.Context, o *outgoing, opts []Option) (*Receipt, error) {
	result := c.core.Do(ctx, &transport.Call{
		Operation: operation,
		Method:    http.MethodPost,
		Route:     "/v1/{account_id}/refunds",
		Path:      o.path,
		Headers: func(h http.Header) {
			transport.JSONHeaders(h)
			h["Accept-Encoding"] = []string{"identity"}
		},
		Body:    o.body,
		Write:   true,
		Patient: wire != nil,
		Wire:    wire,
	}, opts)
	if result.Failure != nil {
		return nil, &OutcomeError{
			Outcome:  Outcome(result.Outcome),
			RefundID: o.refundID,
			Attempts: result.Attempts,
			Evidence: Evidence(result.Evidence),
			Err:      (*Error)(result.Failure),
		}
	}
	return &Receipt{
		StatusCode:  result.StatusCode,
		RequestID:   result.RequestID,
		ContentType: result.Header.Get("Content-Type"),
		Body:        result.Body,
		BodyErr:     result.BodyErr,
		Attempts:    result.Attempts,
		AcceptedAt:  result.Evidence.Ended,
	}, nil
}

func (r *Refund) id() string {
	if r == nil {
		return ""
	}
	return r.RefundID
}

func (r *Refund) encode() ([]byte, error) {
	if r == nil {
		return nil, transport.Invalid("the refund is nil")
	}
	if r.RefundID == "" {
		return nil, transport.Invalid("the refund has no RefundID")
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, transport.Invalid("the metadata cannot be encoded as JSON")
	}
	// What is no text became replacement characters, which text may also hold.
	if bytes.Contains(body, []byte(`\ufffd`)) || bytes.ContainsRune(body, utf8.RuneError) {
		if err := transport.CheckText("refund", *r); err != nil {
			return nil, err
		}
	}
	// A json.RawMessage is copied as it is.
	if !utf8.Valid(body) {
		return nil, transport.Invalid("the metadata holds JSON that is not valid UTF-8")
	}
	return body, nil
}
