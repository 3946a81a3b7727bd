package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/bins"
)

// A target is the service to ask. An area without a URL is not asked.
type target struct {
	binURL, apiKey                      string
	updaterURL, accessToken, merchantID string
	refundURL                           string

	account string // to write refunds to
	job     string // has a result
	pending string // has none yet
}

// An entry is one request of the plan.
type entry struct {
	id     string
	write  bool   // it may record a refund
	text   string // describes it
	method string
	url    string
	header http.Header
	body   []byte
	cards  []string // of a lookup
	error  bool     // its body is read as an error's, even after a 200
}

// A plan is everything that may be sent to a target, in order. It does not depend on the
// responses.
type plan struct {
	target  target
	run     string // part of the ids of the refunds
	entries []entry
}

// Nothing else is looked up: BINs of published test cards, prefixes of their numbers that
// are too short for a card, and identifiers that no issuer has. In a request for several,
// no identifier is a prefix of another.
var (
	severalCards = []string{"555555", "45717360", "41111111111", "378282", "601111"}
	missingJob   = "99999999"
)

const (
	unknownCard = "999999"
	testMark    = "TEST RECORD of a contract probe, please ignore"
	anyRun      = "RUN" // in the plan that is printed
)

func newPlan(t target, run string) *plan {
	p := &plan{target: t, run: run}
	if t.binURL != "" {
		p.lookups()
	}
	if t.updaterURL != "" {
		p.downloads()
	}
	if t.refundURL != "" {
		p.refunds()
	}
	// A service may answer these with a 5xx, and three of those end the run.
	if t.binURL != "" {
		p.refusedLookups()
	}
	return p
}

func (p *plan) lookup(id, text string, enhanced *bool, cards ...string) *entry {
	body, _ := json.Marshal(&bins.LookupRequest{Cards: bins.Cards(cards...), Enhanced: enhanced})
	p.entries = append(p.entries, entry{
		id: "lookup-" + id, text: "POST {bin_url}/bins/multiple, " + text, cards: cards,
		method: http.MethodPost, url: p.target.binURL + "/bins/multiple", body: body,
		header: http.Header{"Authorization": {"Bearer " + p.target.apiKey}, "Content-Type": {"application/json"}},
	})
	return &p.entries[len(p.entries)-1]
}

func (p *plan) lookups() {
	reversed := slices.Clone(severalCards)
	slices.Reverse(reversed)
	twice := slices.Repeat(severalCards[:2], 2)
	p.lookup("one", "411111", nil, "411111")
	p.lookup("enhanced", "411111, enhanced true", new(true), "411111")
	p.lookup("not-enhanced", "411111, enhanced false", new(false), "411111")
	p.lookup("several", strings.Join(severalCards, " "), nil, severalCards...)
	p.lookup("reversed", strings.Join(reversed, " "), nil, reversed...)
	p.lookup("repeated", strings.Join(twice, " "), nil, twice...)
	p.lookup("length-8", "41111111", nil, "41111111")
	p.lookup("length-11", "41111111111", nil, "41111111111")
	p.lookup("more", "620000 424242 305693 353011 510510 52231903", nil, "620000", "424242", "305693", "353011", "510510", "52231903")
}

func (p *plan) refusedLookups() {
	p.lookup("token", "411111, with a wrong token", nil, "411111").header.Set("Authorization", "Bearer wrong-"+p.target.apiKey)
	p.lookup("unknown", unknownCard+", which no issuer has", nil, unknownCard)
	p.lookup("unknown-among", "411111 "+unknownCard, nil, "411111", unknownCard)
	p.lookup("none", "no cards", nil, []string{}...)
	p.lookup("51", "411111, 51 times", nil, slices.Repeat([]string{"411111"}, 51)...)
}

func (p *plan) downloads() {
	get := func(id, job, shown, text string, header http.Header) *entry {
		header.Set("Authorization", "Bearer "+p.target.accessToken)
		header.Set("X-Merchant-Id", p.target.merchantID)
		header.Set("Accept-Encoding", "identity")
		const path = "/updater/inquiries/jobs/"
		p.entries = append(p.entries, entry{
			id: "download-" + id, text: "GET {updater_url}" + path + shown + "/download" + text,
			method: http.MethodGet, url: p.target.updaterURL + path + url.PathEscape(job) + "/download", header: header,
		})
		return &p.entries[len(p.entries)-1]
	}
	get("missing", missingJob, missingJob, ", a job that does not exist", http.Header{}).error = true
	if p.target.pending != "" {
		get("pending", p.target.pending, "{pending}", "", http.Header{}).error = true
	}
	if job := p.target.job; job != "" {
		get("job", job, "{job}", "", http.Header{})
		get("range", job, "{job}", " with Range: bytes=1-", http.Header{"Range": {"bytes=1-"}})
		get("if-range", job, "{job}", " with Range: bytes=1- and the If-Range of another version",
			http.Header{"Range": {"bytes=1-"}, "If-Range": {`"a-version-that-never-was"`}})
	}
}

func (p *plan) refunds() {
	submit := func(id, text string, record map[string]any) {
		body, _ := json.Marshal(record)
		p.entries = append(p.entries, entry{
			id: "refund-" + id, write: true, text: "POST {refund_url}/v1/{account}/refunds " + text,
			method: http.MethodPost, url: p.target.refundURL + "/v1/" + url.PathEscape(p.target.account) + "/refunds",
			header: http.Header{"Content-Type": {"application/json"}}, body: body,
		})
	}
	ids := p.refundIDs()
	submit("full", "all documented members, refund_id "+ids[0]+`, marked "`+testMark+`"`, fullRefund(ids[0]))
	submit("again", "the same bytes again", fullRefund(ids[0]))
	submit("minimal", "refund_id "+ids[1]+" and the mark alone", map[string]any{
		"refund_id": ids[1], "additional_data": map[string]any{"description": testMark},
	})
}

func fullRefund(id string) map[string]any {
	type object = map[string]any
	return object{
		"refund_id": id, "amount": 1, "currency": "USD", "created": "2026-01-01T00:00:00Z",
		"transaction_id": "test-" + id, "transaction_order_id": "test-" + id,
		"payment_method_details": object{"payment_method_type": "card", "card": object{"attributes": object{
			"network": "visa", "type": "credit", "bin": "411111", "issuer_bank": "test", "issuer_country": "US",
		}}},
		"refund_response": object{"status": "declined", "processor_response_code": "05", "reason": "test"},
		"additional_data": object{
			"merchant_account_id": "test", "order_id": "test-" + id, "description": testMark,
			"acquirer_reference_number": "00000000000000000000000", "metadata": object{"test": true},
		},
		"svc_codes": object{"svc_refund_status": "amount_too_high"},
	}
}

func (p *plan) refundIDs() []string {
	return []string{"test-probe-" + p.run + "-1", "test-probe-" + p.run + "-2"}
}

// hash is a digest of the plan's refunds, with address and account. The user has to repeat
// it before one is sent.
func (p *plan) hash() string {
	sum := sha256.New()
	for _, e := range p.entries {
		if e.write {
			fmt.Fprintf(sum, "%s %s %s\n", e.id, e.url, e.body)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

func (p *plan) printReads(w io.Writer) {
	p.print(w, false, "Requests that read (-read). Lookups may be billed.")
}

func (p *plan) printWrites(w io.Writer) {
	p.print(w, true, "Refunds (-write). Each may be recorded: there is no harmless refund, since a service that requires\nnothing records even {}.")
}

func (p *plan) print(w io.Writer, write bool, title string) {
	fmt.Fprintln(w, title)
	for _, e := range p.entries {
		if e.write == write {
			fmt.Fprintf(w, "  %-22s %s\n", e.id, e.text)
		}
	}
	fmt.Fprintln(w)
}
