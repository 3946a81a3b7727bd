package probe

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A Mode says how much a run may send. Each includes the ones before it.
type Mode int

const (
	ModePlan    Mode = iota // nothing
	ModeConnect             // TCP and TLS
	ModeRead                // lookups and downloads
	ModeWrite               // refunds
)

// String is the flag that asks for the mode.
func (m Mode) String() string { return [...]string{"plan", "-connect", "-read", "-write"}[m] }

// A Target is the service to ask. An area without a URL is not asked.
type Target struct {
	BinURL, APIKey                      string
	UpdaterURL, AccessToken, MerchantID string
	RefundURL                           string

	Account string // to write refunds to
	Job     string // whose result is there
	Pending string // whose result is not ready
}

// Only these are ever looked up: BINs of published test cards, beginnings of their
// numbers that are too short for a card, and identifiers that no issuer has.
var (
	knownCards   = []string{"555555", "411111", "620000", "378282", "45717360", "601111", "424242", "305693", "52231903", "353011", "510510"}
	longCards    = []string{"41111111", "41111111111", "55555555", "55555555555"}
	unknownCards = []string{"999999", "000000", "99999999"}
)

const (
	orderRequests  = 20
	longest        = "9999999999999999999" // unknown too; a service may refuse its length
	missingJob     = "99999999"
	minimalRefunds = 4
	brokenSuffix   = "-broken"
	testMark       = "TEST RECORD of a contract probe, please ignore"
)

// An Entry is one request of the plan.
type Entry struct {
	ID     string
	Mode   Mode     // that it needs
	Area   string   // "bins", "updater" or "refunds"
	Points []string // that it helps to answer
	Text   string   // what it sends, for people

	path string // below the area's base URL
	// One of these makes the rest of what is sent from what was seen so far. Nil: the
	// request would answer nothing, as a lookup would with fewer known cards than it needs.
	cards  func(known []string) []string // known: by themselves
	needs  int
	header func(seen facts) http.Header
	refund func(seen facts) map[string]any

	enhanced *bool
	broken   bool // its token is
	idle     bool // its connection is watched after the response
}

// A Plan is all that a run may send, in its order.
type Plan struct {
	Target  Target
	Run     int // of this plan, which makes the ids of its refunds unique
	Entries []Entry
}

// NewPlan makes the plan of every mode for the areas that t names.
func NewPlan(t Target, run int) *Plan {
	p := &Plan{Target: t, Run: run}
	if t.BinURL != "" {
		p.lookups()
	}
	if t.UpdaterURL != "" {
		p.downloads()
	}
	if t.RefundURL != "" {
		p.refunds()
	}
	// Last comes what a service may answer with a 5xx, three of which end the run.
	if t.BinURL != "" {
		p.refusedLookups()
	}
	return p
}

func (p *Plan) add(e Entry) { p.Entries = append(p.Entries, e) }

// lookup adds a lookup with an ID of its own, or a number.
func (p *Plan) lookup(e Entry, text string, points ...string) {
	e.ID = "lookup-" + cmp.Or(e.ID, fmt.Sprintf("%02d", len(p.Entries)+1))
	e.Mode, e.Area, e.Points, e.path = ModeRead, "bins", points, "/bins/multiple"
	e.Text = "POST {bin_url}/bins/multiple, " + text
	if e.enhanced != nil {
		e.Text += fmt.Sprintf(", enhanced %v", *e.enhanced)
	}
	p.add(e)
}

func always(cards ...string) func([]string) []string {
	return func([]string) []string { return cards }
}

func (p *Plan) lookups() {
	for i, card := range knownCards {
		points := []string{"lookup.echo", "lookup.nulls", "service.request_id", "service.quota", "service.idle"}
		p.lookup(Entry{cards: always(card), idle: i == 0}, card, points[:5-min(i, 1)]...)
	}
	for _, card := range longCards {
		p.lookup(Entry{cards: always(card)}, card, "lookup.echo")
	}
	shuffle := rand.New(rand.NewPCG(1, 2)) // the plan is the same each time
	for range orderRequests {
		cards := slices.Clone(knownCards)
		shuffle.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
		p.lookup(Entry{needs: 2, cards: func(known []string) []string {
			return slices.DeleteFunc(slices.Clone(cards), func(card string) bool { return !slices.Contains(known, card) })
		}}, "those that it knew of "+strings.Join(cards, " "), "lookup.order", "lookup.items")
	}
	for i := range 2 {
		p.lookup(Entry{needs: 2*i + 2, cards: func(known []string) []string {
			a, b := known[2*i], known[2*i+1]
			return []string{a, b, b, a, a, b, b, a}
		}}, "two that it knew, four times each", "lookup.duplicates")
	}
	for range 2 {
		for i := range 2 {
			for _, enhanced := range []*bool{nil, new(true), new(false)} {
				p.lookup(Entry{enhanced: enhanced, needs: i + 1, cards: func(known []string) []string { return known[i : i+1] }},
					"one that it knew", "lookup.enhanced")
			}
		}
	}
}

func (p *Plan) refusedLookups() {
	p.lookup(Entry{ID: "broken", broken: true, cards: always("411111")}, "411111, with a broken token", "lookup.unauthorized", "lookup.error")
	for _, card := range unknownCards {
		p.lookup(Entry{ID: "unknown-" + card, cards: always(card)}, card+", which no issuer has", "lookup.unknown", "lookup.error")
	}
	p.lookup(Entry{ID: "none", cards: always([]string{}...)}, "no cards", "lookup.bounds", "lookup.error")
	p.lookup(Entry{ID: "many", needs: 1, cards: func(known []string) []string { return slices.Repeat(known, 51)[:51] }}, "51 cards, of those that it knew", "lookup.bounds", "lookup.error")
	p.lookup(Entry{ID: "longest", cards: always(longest)}, longest+", which no issuer has", "lookup.echo", "lookup.error")
}

func (p *Plan) downloads() {
	get := func(id, job, name, text string, header func(http.Header, facts) bool, points ...string) {
		p.add(Entry{
			ID: id, Mode: ModeRead, Area: "updater", Points: points, path: "/updater/inquiries/jobs/" + url.PathEscape(job) + "/download",
			Text: "GET {updater_url}/updater/inquiries/jobs/" + name + "/download" + text,
			header: func(seen facts) http.Header {
				h := http.Header{}
				if job == "" || !header(h, seen) {
					return nil
				}
				return h
			},
		})
	}
	plain := func(http.Header, facts) bool { return true }
	part := func(h http.Header, _ facts) bool {
		h.Set("Range", "bytes=1-")
		return true
	}
	get("download-missing", missingJob, missingJob, ", a job that does not exist", plain, "download.missing")
	if p.Target.Pending != "" {
		get("download-pending", p.Target.Pending, "{pending}", "", plain, "download.pending")
	}
	if p.Target.Job != "" {
		get("download-content", p.Target.Job, "{job}", "", plain, "download.content", "download.resume")
		get("download-range", p.Target.Job, "{job}", " with Range: bytes=1-", part, "download.resume")
		get("download-if-range", p.Target.Job, "{job}", " with Range: bytes=1- and an If-Range that is not the content's", func(h http.Header, seen facts) bool {
			h.Set("If-Range", `"a-version-that-never-was"`)
			if content := seen["download-content"]; content != nil && content.Validator == "date" {
				h.Set("If-Range", "Mon, 01 Jan 2001 00:00:00 GMT")
			}
			part(h, seen)
			return seen["download-range"] != nil && seen["download-range"].Status == http.StatusPartialContent
		}, "download.resume")
	}
}

// refundMembers are the members of a refund record that the interface documents,
// with values that no one mistakes for a customer's. ID stands for the refund_id.
var refundMembers = []struct {
	name  string
	value any
}{
	{"refund_id", "ID"}, {"amount", 1}, {"currency", "USD"}, {"created", "2001-01-01T00:00:00Z"},
	{"transaction_id", "ID"}, {"transaction_order_id", "ID"},
	{"payment_method_details.payment_method_type", "card"},
	{"payment_method_details.card.attributes.network", "VISA"},
	{"payment_method_details.card.attributes.type", "credit"},
	{"payment_method_details.card.attributes.bin", "411111"},
	{"payment_method_details.card.attributes.issuer_bank", "TEST"},
	{"payment_method_details.card.attributes.issuer_country", "US"},
	{"refund_response.status", "declined"}, {"refund_response.processor_response_code", "05"}, {"refund_response.reason", "test"},
	{"additional_data.merchant_account_id", "test"}, {"additional_data.order_id", "ID"}, {"additional_data.description", testMark},
	{"additional_data.acquirer_reference_number", "00000000000000000000000"},
	{"additional_data.metadata", map[string]any{"test": true}}, {"svc_codes.svc_refund_status", "amount_too_high"},
}

// testRefund has the members in names, and always the mark of a test record with its
// id. Nil names ask for all.
func testRefund(id string, names []string) map[string]any {
	refund := map[string]any{}
	for _, m := range refundMembers {
		if names != nil && m.value != testMark && !slices.Contains(names, m.name) {
			continue
		}
		object, path := refund, strings.Split(m.name, ".")
		for _, name := range path[:len(path)-1] {
			if object[name] == nil {
				object[name] = map[string]any{}
			}
			object = object[name].(map[string]any)
		}
		switch object[path[len(path)-1]] = m.value; m.value {
		case "ID":
			object[path[len(path)-1]] = id
		case testMark:
			object[path[len(path)-1]] = testMark + ": " + id
		}
	}
	return refund
}

func (p *Plan) refunds() {
	ids := p.RefundIDs()
	post := func(name, text string, refund func(seen facts) map[string]any, points ...string) {
		p.add(Entry{
			ID: name, Mode: ModeWrite, Area: "refunds", Points: points, path: "/v1/" + url.PathEscape(p.Target.Account) + "/refunds",
			Text: "POST {refund_url}/v1/{account}/refunds " + text, refund: refund,
		})
	}
	post("refund-full", "all documented members, refund_id "+ids[0]+`, marked "`+testMark+`"`,
		func(facts) map[string]any { return testRefund(ids[0], nil) }, "refund.response", "refund.credential", "refund.duplicate")
	post("refund-duplicate", "the same bytes again", func(seen facts) map[string]any {
		if first := seen["refund-full"]; first == nil || first.Status/100 != 2 {
			return nil // nothing to be the duplicate of
		}
		return testRefund(ids[0], nil)
	}, "refund.duplicate")
	post("refund-minimal-1", "the mark alone, with the id "+ids[1], func(facts) map[string]any { return testRefund(ids[1], []string{}) }, "refund.required")
	for n := 2; n <= minimalRefunds; n++ {
		post(fmt.Sprintf("refund-minimal-%d", n), "the mark with the id "+ids[n]+", and the members that the refusals before named", func(seen facts) map[string]any {
			last := seen[fmt.Sprintf("refund-minimal-%d", n-1)]
			if last == nil || last.Status/100 != 4 || len(last.Named) == 0 {
				return nil
			}
			return testRefund(ids[n], named(seen))
		}, "refund.required")
	}
}

// RefundIDs are the ids of the refunds that the plan submits.
func (p *Plan) RefundIDs() (ids []string) {
	for n := range 1 + minimalRefunds {
		ids = append(ids, fmt.Sprintf("test-probe-%s-%d-%d", p.scope(), p.Run, n+1))
	}
	return ids
}

// scope tells the plans of different services and accounts apart.
func (p *Plan) scope() string {
	return digest(p.service(), p.Target.Account, p.Target.Job, p.Target.Pending)
}

func (p *Plan) service() string {
	return digest(p.Target.BinURL, p.Target.UpdaterURL, p.Target.RefundURL)
}

func digest(list ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(list, "\x00")))
	return hex.EncodeToString(sum[:4])
}

// Hash names the plan of a mode, to be given back before anything is written. It
// covers the addresses and the account.
func (p *Plan) Hash() string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %d\n", p.scope(), p.Run)
	for _, e := range p.Entries {
		fmt.Fprintf(hash, "%s %s\n", e.ID, e.Text)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// Print writes the entries that mode sends; ModePlan prints those of every mode.
func (p *Plan) Print(w io.Writer, mode Mode) {
	if mode == ModePlan {
		mode = ModeWrite
	}
	fmt.Fprintf(w, "Connections to each area, to see versions, ALPN and when idle ones are closed (-connect)\n")
	last := ModeConnect
	for _, e := range p.Entries {
		if e.Mode > mode {
			continue
		}
		if e.Mode != last {
			fmt.Fprintf(w, "\n%s\n", map[Mode]string{
				ModeRead:  "Requests that read (-read). Lookups may be billed.",
				ModeWrite: "Refunds (-write). Each may be recorded: there is no harmless refund, since a service that requires nothing records even {}.",
			}[e.Mode])
			last = e.Mode
		}
		fmt.Fprintf(w, "  %-24s %s\n  %-24s for %s\n", e.ID, e.Text, "", strings.Join(e.Points, ", "))
	}
	fmt.Fprintf(w, "\nplan hash %s\n", p.Hash())
}
