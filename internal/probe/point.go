package probe

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// What can be said of a point.
const (
	Observed      = "observed"
	Contradicted  = "contradicted" // more than one answer was seen
	NotAnswerable = "not answerable"
	NotTried      = "not tried"
)

// A Point is an open question of the contract, and what the service answered.
type Point struct {
	ID           string   `json:"id"`
	State        string   `json:"state"`
	Answer       []string `json:"answer"`
	Observations int      `json:"observations"`
	Bound        string   `json:"bound"`
	Requests     int      `json:"requests"`
}

// pointIDs is the order of the report.
var pointIDs = []string{
	"lookup.order", "lookup.items", "lookup.duplicates", "lookup.echo", "lookup.unknown", "lookup.nulls",
	"lookup.enhanced", "lookup.bounds", "lookup.unauthorized", "lookup.error",
	"download.missing", "download.pending", "download.content", "download.resume",
	"refund.required", "refund.duplicate", "refund.response", "refund.credential",
	"service.request_id", "service.quota", "service.idle",
}

// A tally counts what single observations said.
type tally map[string]int

// point sums up: one answer is observed, several are contradicted.
func (t tally) point(order ...string) Point {
	seen := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(slices.Index(order, a)-slices.Index(order, b), strings.Compare(a, b))
	})
	var parts []string
	total := 0
	for _, answer := range seen {
		total += t[answer]
		parts = append(parts, fmt.Sprintf("%s in %d", answer, t[answer]))
	}
	if len(seen) < 2 {
		return answer(total, seen...)
	}
	return Point{State: Contradicted, Answer: seen, Observations: total, Bound: fmt.Sprintf("%s of %d", strings.Join(parts, ", "), total)}
}

// share is the largest share of deviations, in percent, that n observations without
// one allow at a confidence of 95 %.
func share(n int) float64 { return 100 * (1 - math.Pow(0.05, 1/float64(n))) }

// answer is a point that was seen as one in n observations.
func answer(n int, words ...string) Point {
	if n == 0 || len(words) == 0 {
		return Point{State: NotAnswerable}
	}
	bound := fmt.Sprintf("%s in %d of %d: with 95 %% confidence, at most %.1f %% of requests differ", strings.Join(words, ", "), n, n, share(n))
	return Point{State: Observed, Answer: words, Observations: n, Bound: bound}
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

func orNone(names []string) []string {
	if len(names) == 0 {
		return []string{"none"}
	}
	return names
}

// Points draws what it can from what was seen.
func Points(plan *Plan, ledger *Ledger) []Point {
	seen := ledger.Seen()
	points := slices.Concat(lookupPoints(seen), downloadPoints(seen), refundPoints(seen), servicePoints(seen))
	mode, last := ModePlan, -1
	for i, e := range plan.Entries {
		if ledger.wasSent(e.ID) {
			mode, last = max(mode, e.Mode), i
		}
	}
	for i := range points {
		p, tried := &points[i], false
		p.ID = pointIDs[i]
		for i, e := range plan.Entries {
			if slices.Contains(e.Points, p.ID) {
				tried = tried || i <= last && e.Mode <= mode // it had its turn
				if ledger.wasSent(e.ID) {
					p.Requests++
				}
			}
		}
		if p.State == NotAnswerable && !tried {
			area, _, _ := strings.Cut(p.ID, ".")
			p.State, p.Bound = NotTried, asks[area]
		}
		if p.Answer == nil {
			p.Answer = []string{}
		}
	}
	return points
}

// asks says what would answer the points of an area.
var asks = map[string]string{
	"lookup":   "-read asks this, with CARDDATA_BIN_URL and CARDDATA_API_KEY",
	"download": "-read asks this, with CARDDATA_UPDATER_URL, CARDDATA_ACCESS_TOKEN, CARDDATA_MERCHANT_ID, -job and -pending",
	"refund":   "-write asks this, with CARDDATA_REFUND_URL",
	"service":  "-connect and -read ask this",
}
