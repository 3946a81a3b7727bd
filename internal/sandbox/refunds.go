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

// SetRefundResponse sets the response to a well-formed refund. At a status of 300
// and above the refund does not count as accepted.
func (e *Engine) SetRefundResponse(status int, contentType, body string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.receipt = &response{status: status, contentType: contentType, body: []byte(body)}
}

func (e *Engine) refund(r *http.Request, account string, body []byte) response {
	account, err := url.PathUnescape(account)
	if err != nil || account == "" {
		return failure(http.StatusNotFound, "not_found", "no such account")
	}
	if a, ok := checkPost(r); !ok {
		return a
	}
	h := e.like()
	if h.credential > 0 && !authorized(r) {
		return failure(h.credential, "unauthorized", "a bearer credential is required")
	}
	if f, refused := refusal(CheckBody(Refunds, body)); refused {
		return badRequest(http.StatusBadRequest, f)
	}
	var record map[string]any
	json.Unmarshal(body, &record)
	if missing := h.missingMember(record); missing != "" {
		return badRequest(http.StatusBadRequest, Finding{Path: missing, Problem: "is missing"})
	}
	id, _ := record["refund_id"].(string)
	return e.accept(h, Refund{time.Now(), account, id, body})
}

type refundKey struct{ account, id string }

// accept records a refund, unless the profile merges or refuses it as a duplicate.
func (e *Engine) accept(h *habits, refund Refund) response {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := refundKey{refund.AccountID, refund.RefundID}
	duplicate := key.id != "" && e.seen[key]
	if duplicate && h.duplicate == "refused" {
		return failure(h.duplicateStatus, "duplicate", "a refund with this refund_id was accepted before")
	}
	a := h.accepted(key, e.refunds.total)
	if e.receipt != nil {
		a = *e.receipt
	}
	if a.status < 300 && !(duplicate && h.duplicate == "same response") {
		e.refunds.add(refund, e.retain)
		if h.duplicate != "" {
			e.seen[key] = true
		}
	}
	return a
}

// accepted is the response to the refund with that number.
func (h *habits) accepted(key refundKey, number int) response {
	r := h.receipt
	if r == nil {
		r = &receipt{status: http.StatusOK, mediaType: "application/json", shape: json.RawMessage("{}")}
	}
	if h.duplicate == "another response" {
		return r.accept(uint64(number))
	}
	return r.accept(hash(key.account+"\x00"+key.id) &^ 1)
}
