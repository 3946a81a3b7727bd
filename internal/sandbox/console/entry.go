package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// An entry is what is told of a request. All of it is masked already.
type entry struct {
	Number      int          `json:"number"` // from 1, in order of arrival
	Group       int          `json:"group"`  // the number of the first attempt
	Attempt     int          `json:"attempt"`
	Time        time.Time    `json:"time"`
	Area        sandbox.Area `json:"area,omitempty"` // "": the path belongs to none
	Method      string       `json:"method"`
	Path        string       `json:"path"`
	Cards       []string     `json:"cards,omitempty"` // the first of them
	CardCount   int          `json:"card_count,omitempty"`
	RefundID    string       `json:"refund_id,omitempty"`
	Fault       string       `json:"fault,omitempty"`
	State       string       `json:"state"`
	Status      int          `json:"status,omitempty"`
	DurationMS  float64      `json:"duration_ms"`
	Accepted    bool         `json:"accepted"` // processed, even if the caller was not told
	DuplicateOf int          `json:"duplicate_of,omitempty"`

	request, response message
	key               [sha256.Size]byte // the same for what may be an attempt of the same
	isRefund          bool              // with an id
	changed           int
}

// A message is a request or an answer in detail.
type message struct {
	Header map[string]string `json:"header"`
	Body   json.RawMessage   `json:"body,omitempty"`
	Text   string            `json:"text,omitempty"` // in place of a body that is not whole JSON
	Bytes  int64             `json:"bytes"`
	Cut    bool              `json:"cut,omitempty"` // Text is not all of them
}

// A detail is an entry with its messages.
type detail struct {
	entry
	Request  message `json:"request"`
	Response message `json:"response"`
}

const (
	shownCards = 3
	maxBody    = 1 << 20 // of which no sandbox reads more
)

// newEntry reads the body of r and puts it back.
func newEntry(r *http.Request, now time.Time) *entry {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxBody))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}

	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	e := &entry{
		Attempt: 1,
		Time:    now.UTC(),
		Area:    sandbox.AreaOf(r),
		Method:  word(r.Method),
		Path:    maskPath(path),
		State:   open,
		request: message{Header: maskHeader(r.Header), Bytes: int64(len(body))},
	}
	identity := [][]byte{[]byte(r.Method), []byte(r.URL.Path)}
	switch e.Area {
	case sandbox.Bins:
		var lookup struct{ Cards []struct{ Card string } }
		json.Unmarshal(body, &lookup)
		e.CardCount = len(lookup.Cards)
		for _, c := range lookup.Cards[:min(shownCards, e.CardCount)] {
			e.Cards = append(e.Cards, mask.Identifier(c.Card))
		}
		identity = append(identity, body)
	case sandbox.Refunds:
		var refund map[string]json.RawMessage
		var id string
		json.Unmarshal(body, &refund)
		json.Unmarshal(refund["refund_id"], &id)
		e.RefundID, e.isRefund = text(id), id != ""
		if e.isRefund {
			identity = append(identity, []byte(id))
		} else {
			identity = append(identity, body)
		}
	case sandbox.Updater:
		identity = append(identity, []byte(r.Header.Get("X-Merchant-Id")))
	}
	e.key = sha256.Sum256(bytes.Join(identity, []byte{0}))
	e.request.show(body, requestViews[e.Area])
	return e
}
