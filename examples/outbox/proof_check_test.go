package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/carddata/carddata-go/refunds"
)

// counts returns how many refunds are in which state.
func (p *proof) counts() map[string]int {
	p.t.Helper()
	counts := make(map[string]int)
	for _, r := range p.rows() {
		counts[r.State]++
	}
	return counts
}

type refundRow struct {
	ID                               int64
	RefundID, Content, State, Reason string
	Resubmits                        int // decisions
}

func (p *proof) rows() (rows []refundRow) {
	p.t.Helper()
	err := p.db.Select(p.t.Context(), &rows, `SELECT id, refund_id, content, state, reason,
		(SELECT COUNT(*) FROM outbox_decision WHERE refund = r.id AND what = 'resubmit') AS resubmits FROM outbox_refund AS r ORDER BY id`)
	if err != nil {
		p.t.Fatal(err)
	}
	return rows
}

// recorded returns where in the sandbox's record each content stands.
func (p *proof) recorded() map[string][]int {
	at := make(map[string][]int)
	for i, r := range p.engine.Refunds() {
		at[string(r.Body)] = append(at[string(r.Body)], i)
	}
	return at
}

// check compares what was committed, what the outbox knows, and what the sandbox
// recorded, and returns some counts.
func (p *proof) check() map[string]int {
	p.t.Helper()
	recorded := p.recorded()
	counts := make(map[string]int)
	stored := make(map[string]bool)
	latest := make(map[string]int) // in the record, by refund_id
	for _, r := range p.rows() {
		counts[r.State]++
		if r.State == unknown {
			counts[r.Reason]++
		}
		stored[r.Content] = true
		at := recorded[r.Content]
		n := len(at)
		delete(recorded, r.Content)
		if n > 0 {
			if before, ok := latest[r.RefundID]; ok && at[0] < before {
				p.t.Errorf("row %d overtook a record with the same refund_id", r.ID)
			}
			latest[r.RefundID] = at[n-1]
		}
		switch {
		case !p.committed[r.Content]:
			p.t.Errorf("row %d was rolled back", r.ID)
		case r.State == accepted && n == 0:
			p.t.Errorf("row %d is lost: accepted here and not recorded there", r.ID)
		case (r.State == rejected || r.State == pending || r.State == sending) && n > r.Resubmits:
			p.t.Errorf("row %d is recorded %d times there, and %s here", r.ID, n, r.State)
		case n > 1+r.Resubmits:
			p.t.Errorf("row %d is recorded %d times, after %d decisions to resubmit", r.ID, n, r.Resubmits)
		}
		counts["duplicates"] += max(0, n-1)
	}
	for content := range p.committed {
		if !stored[content] {
			p.t.Errorf("lost: %s", content)
		}
	}
	for content := range recorded {
		p.t.Errorf("a ghost: %s", content)
	}
	return counts
}

// report writes what the service has recorded, one row for each refund_id, as its
// operator exports it. Of one row in a hundred something is wrong: it returns their
// line numbers.
func (p *proof) report(wrong bool) (name string, lines []int) {
	p.t.Helper()
	latest := make(map[string]refunds.Refund)
	var ids []string
	for _, recorded := range p.engine.Refunds() {
		var r refunds.Refund
		if err := json.Unmarshal(recorded.Body, &r); err != nil {
			p.t.Fatal(err)
		}
		if _, found := latest[r.RefundID]; !found {
			ids = append(ids, r.RefundID)
		}
		latest[r.RefundID] = r
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\ufeffReport of %s;account;refund_id;amount;currency\r\n", time.Now())
	line := 1
	for _, id := range ids {
		account, amount, currency := "acct", *latest[id].Amount, "EUR"
		line++
		if wrong && p.random.IntN(100) == 0 {
			lines = append(lines, line)
			switch len(lines) % 5 {
			case 0:
				amount++
			case 1:
				currency = "USD"
			case 2:
				account = "other"
			case 3:
				id = "rf_x" + id
			case 4: // it appears twice
				fmt.Fprintf(&text, "x;%s;%s;%d;%s\r\n", account, id, amount, currency)
				line++
				lines[len(lines)-1] = line
			}
		}
		fmt.Fprintf(&text, "x;%s;%s;%d;%s\r\n", account, id, amount, currency)
	}
	return write(p.t, "report.csv", text.String()), lines
}

// settle imports a report that is complete until now, after its preview, and returns
// what the preview said.
func (p *proof) settle(report string, flags ...string) string {
	p.t.Helper()
	p.age()
	args := append([]string{"-import", report, "-complete-until", time.Now().UTC().Format(time.RFC3339Nano)}, flags...)
	before := p.counts()
	preview := p.run("resolve", args...).Stdout
	if !maps.Equal(before, p.counts()) {
		p.t.Error("the preview changed something")
	}
	_, token, found := strings.Cut(preview, "-expect ")
	if !found {
		return preview
	}
	token, _, _ = strings.Cut(token, "\n")
	if got := p.run("resolve", append(args, "-expect", token)...); !strings.Contains(got.Stdout, "refunds changed") {
		p.t.Errorf("%+v", got)
	}
	return preview
}

// updates are the rows with an earlier record of their refund_id that is accepted:
// what a report says about the refund_id says nothing about them.
func (p *proof) updates() map[int64]bool {
	found := make(map[int64]bool)
	accepted := make(map[string]bool)
	for _, r := range p.rows() {
		found[r.ID] = accepted[r.RefundID]
		accepted[r.RefundID] = accepted[r.RefundID] || r.State == "accepted"
	}
	return found
}

// unsettled returns the rows that a report could have settled, and those that wait for
// a person.
func (p *proof) unsettled() (byReport, byPerson []refundRow) {
	updates := p.updates()
	for _, r := range p.rows() {
		switch {
		case r.State != unknown:
		case updates[r.ID]:
			byPerson = append(byPerson, r)
		default:
			byReport = append(byReport, r)
		}
	}
	return byReport, byPerson
}

// look is the person, who looks the others up at the service.
func (p *proof) look(rows []refundRow) {
	p.t.Helper()
	recorded := p.recorded()
	p.age()
	for _, r := range rows {
		decision := "-not-recorded"
		if len(recorded[r.Content]) > 0 {
			decision = "-accepted"
		}
		p.run("resolve", decision, "-note", "looked up", strconv.FormatInt(r.ID, 10))
	}
}
