package main

import (
	"strconv"
)

// counts returns how many refunds are in which state.
func (p *proof) counts() map[string]int {
	p.t.Helper()
	counts := make(map[string]int)
	for _, r := range p.rows() {
		counts[r.state]++
	}
	return counts
}

type refundRow struct {
	id                               int64
	refundID, content, state, reason string
	resubmits                        int // decisions
}

func (p *proof) rows() (rows []refundRow) {
	p.t.Helper()
	err := p.db.query(p.t.Context(), func(scan scanner) error {
		var r refundRow
		err := scan(&r.id, &r.refundID, &r.content, &r.state, &r.reason, &r.resubmits)
		rows = append(rows, r)
		return err
	}, `SELECT id, refund_id, content, state, reason, (SELECT COUNT(*) FROM outbox_decision WHERE refund = r.id AND what = 'resubmit')
		FROM outbox_refund AS r ORDER BY id`)
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
		counts[r.state]++
		if r.state == unknown {
			counts[r.reason]++
		}
		stored[r.content] = true
		at := recorded[r.content]
		n := len(at)
		delete(recorded, r.content)
		if n > 0 {
			if before, ok := latest[r.refundID]; ok && at[0] < before {
				p.t.Errorf("row %d overtook a record with the same refund_id", r.id)
			}
			latest[r.refundID] = at[n-1]
		}
		switch {
		case !p.committed[r.content]:
			p.t.Errorf("row %d was rolled back", r.id)
		case r.state == accepted && n == 0:
			p.t.Errorf("row %d is lost: accepted here and not recorded there", r.id)
		case (r.state == rejected || r.state == pending || r.state == sending) && n > r.resubmits:
			p.t.Errorf("row %d is recorded %d times there, and %s here", r.id, n, r.state)
		case n > 1+r.resubmits:
			p.t.Errorf("row %d is recorded %d times, after %d decisions to resubmit", r.id, n, r.resubmits)
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

// decide is the operator: of the unknown refunds, a half is looked up at the
// service, and the other half submitted again without looking.
func (p *proof) decide() {
	p.t.Helper()
	recorded := p.recorded()
	chosen := make(map[string][]string)
	for _, r := range p.rows() {
		if r.state != unknown {
			continue
		}
		flag := "-resubmit"
		if p.random.IntN(2) == 0 {
			flag = "-not-recorded"
			if len(recorded[r.content]) > 0 {
				flag = "-accepted"
			}
		}
		chosen[flag] = append(chosen[flag], strconv.FormatInt(r.id, 10))
	}
	p.age()
	for flag, rows := range chosen {
		p.run("resolve", append([]string{flag, "-note", "the proof"}, rows...)...)
	}
}
