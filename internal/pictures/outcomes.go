package main

import (
	"fmt"
	"strings"
)

// drawOutcomes draws what can become of a refund, and what to do.
func drawOutcomes() []byte {
	outcomes := []struct {
		class, name, condition string
		when, then             []string
	}{
		{"good", "Accepted", "err == nil",
			[]string{"a 2xx status without an HTML page", "or the documented error object, that", "your receipt check accepts"},
			[]string{"Done.", "Keep the receipt's request id."}},
		{"calm", "Not sent", "ErrNotSent",
			[]string{"no byte was written: a bad argument,", "no token, no turn before the deadline,", "no connection"},
			[]string{"Submit it again later if Retryable().", "ErrInvalidArgument: correct it.", "Otherwise correct host or certificate."}},
		{"warn", "Rejected", "ErrRejected",
			[]string{"a 4xx status other than 408,", "or 307, 308, 501, 505"},
			[]string{"Submit it again later if Retryable().", "ErrConflict: look for an earlier one.", "Otherwise correct it, or the setup."}},
		{"bad", "Unknown", "ErrOutcomeUnknown",
			[]string{"it was sent, but then: a timeout,", "a broken connection, a cancellation,", "408, another 5xx, 301 to 303"},
			[]string{"It may have been recorded.", "Find out by its refund_id", "before you submit it again."}},
	}
	const top, rowHeight = 64, 102
	c := canvas{width: 900, height: top + rowHeight*len(outcomes) + 4, title: "What can become of a refund, and what to do"}
	c.text("strong", 180, 36, "Outcome")
	c.text("strong", 374, 36, "When")
	c.text("strong", 634, 36, "What to do")
	middle := top + rowHeight*len(outcomes)/2 - 8
	c.box(20, middle-30, 104, 60, "Submit", "a refund")
	for i, o := range outcomes {
		y := top + rowHeight*i
		center := y + 43
		c.arrow(fmt.Sprintf("124,%d 150,%d 150,%d 178,%d", middle, middle, center, center))
		c.rect("box", 180, y, 700, rowHeight-16)
		c.bar(o.class, 180, float64(y), 6, rowHeight-16)
		c.text("strong "+o.class, 200, center-4, o.name)
		c.text("code", 200, center+18, o.condition)
		c.paragraph(374, center+5, o.when)
		c.paragraph(634, center+5, o.then)
		c.about += fmt.Sprintf("%s (%s): when %s. What to do: %s ", o.name, o.condition, strings.Join(o.when, " "), strings.Join(o.then, " "))
	}
	return c.picture()
}
