package main

import (
	"fmt"
	"strconv"
	"strings"
)

// A target bounds what the library takes of a unit: as a share of what a peer
// takes, or as it is.
type target struct {
	unit string
	of   string // the library's contestant; "" is library
	peer string // "" compares with nothing, and everyClient with each
	bound
}

// everyClient is every peer but what is written by hand.
const everyClient = "every client"

// A bound is one of the two.
type bound struct{ most, least float64 }

func atMost(x float64) bound  { return bound{most: x} }
func atLeast(x float64) bound { return bound{least: x} }

// holds tells whether x, with the three digits that are shown, is within the bound.
func (b bound) holds(x float64) bool {
	if digits, err := strconv.ParseFloat(number(x), 64); err == nil {
		x = digits
	}
	return x >= b.least && (b.least > 0 || x <= b.most)
}

func (b bound) String() string {
	if b.least > 0 {
		return "at least " + number(b.least)
	}
	return "at most " + number(b.most)
}

// A verdict is a target and what was measured.
type verdict struct {
	Target   string `json:"target"`
	Measured spread `json:"measured"`
	Met      bool   `json:"met"`
}

func (t target) verdicts(r *result) []verdict {
	of := t.of
	if of == "" {
		of = library
	}
	own := r.figure(of, t.unit)
	if own == nil {
		return []verdict{{Target: fmt.Sprintf("%s of %s was not measured", t.unit, of)}}
	}
	if t.peer == "" {
		return []verdict{{fmt.Sprintf("%s: %s %s", of, t.bound, t.unit), own.Spread, t.holds(own.Spread.Median)}}
	}
	var all []verdict
	for _, f := range r.Figures {
		if f.Unit != t.unit || f.Contestant == of || t.peer != everyClient && t.peer != f.Contestant {
			continue
		}
		if t.peer == everyClient && (strings.HasPrefix(f.Contestant, library) || f.Contestant == byHand) {
			continue
		}
		ratio, ok := paired(own.Rounds, f.Rounds)
		if !ok {
			continue
		}
		all = append(all, verdict{fmt.Sprintf("%s: %s × the %s of %s", of, t.bound, unitName(t.unit), f.Contestant), ratio, t.holds(ratio.Median)})
	}
	if len(all) == 0 {
		return []verdict{{Target: fmt.Sprintf("%s of %s was not measured", t.unit, t.peer)}}
	}
	return all
}

// number writes three digits.
func number(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 10:
		return fmt.Sprintf("%.3g", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
