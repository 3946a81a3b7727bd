package sandbox

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// A Refund is a record that was accepted.
type Refund struct {
	Time time.Time
	// AccountID is the path's account, unescaped.
	AccountID string
	// RefundID is the record's refund_id, empty when that is no string.
	RefundID string
	// Body is the record as it came.
	Body json.RawMessage
}

// Refunds returns copies of the latest accepted refunds in order of arrival.
func (e *Engine) Refunds() []Refund {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.refunds.all()
	for i := range all {
		all[i].Body = bytes.Clone(all[i].Body)
	}
	return all
}

// RefundCount reports how many refunds were accepted, including those that
// [Engine.Refunds] no longer has.
func (e *Engine) RefundCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refunds.total
}

// SetRefundResponse sets the answer to a well-formed refund. At a status of 300
// and above the refund does not count as accepted.
func (e *Engine) SetRefundResponse(status int, contentType, body string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.receipt = answer{status: status, contentType: contentType, body: []byte(body)}
}

func defaultReceipt() answer {
	return answer{contentType: "application/json", body: []byte("{}")}
}

func (e *Engine) refund(r *http.Request, account string, body []byte) answer {
	account, err := url.PathUnescape(account)
	if err != nil || account == "" {
		return failure(http.StatusNotFound, "not_found", "no such account")
	}
	if a, ok := checkPost(r); !ok {
		return a
	}
	var record map[string]json.RawMessage
	if err := json.Unmarshal(body, &record); err != nil || record == nil {
		return failure(http.StatusBadRequest, "bad_request", "the body is not a JSON object")
	}
	var id string
	if json.Unmarshal(record["refund_id"], &id) != nil {
		id = ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.receipt.status < 300 {
		e.refunds.add(Refund{time.Now(), account, id, body}, e.retain)
	}
	return e.receipt
}
