package sandbox

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// A Refund is a record that was accepted.
type Refund struct {
	Time time.Time
	// AccountID is the path's account, unescaped.
	AccountID string
	// RefundID is the record's refund_id; empty if it is not a string.
	RefundID string
	// Body is the record as it arrived.
	Body json.RawMessage
}

// Refunds returns copies of the latest accepted refunds in order of arrival.
func (e *Engine) Refunds() []Refund {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := slices.Clone(e.refunds)
	for i := range all {
		all[i].Body = bytes.Clone(all[i].Body)
	}
	return all
}

// SetRefundResponse sets the response to a well-formed refund. At a status of 300
// and above the refund does not count as accepted.
func (e *Engine) SetRefundResponse(status int, contentType, body string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.receipt = response{status: status, contentType: contentType, body: []byte(body)}
}

func (e *Engine) refund(r *http.Request, account string, body []byte) response {
	account, err := url.PathUnescape(account)
	if err != nil || account == "" {
		return failure(http.StatusNotFound, "not_found", "no such account")
	}
	members, refusal := readPost(Refunds, r, body)
	if refusal != nil {
		return *refusal
	}
	id, _ := members["refund_id"].(string)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.receipt.status < 300 {
		e.refunds = latest(e.refunds, Refund{time.Now(), account, id, body}, e.retain)
	}
	return e.receipt
}
