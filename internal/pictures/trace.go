package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

//go:embed trace.json
var traceText []byte

type span struct {
	Name               string
	StartTime, EndTime time.Time
	Attributes         map[string]any
	Events             []struct {
		Name string
		Time time.Time
	}
}

// drawTrace draws a call and its two attempts over time.
func drawTrace() ([]byte, error) {
	var spans []span
	if err := json.Unmarshal(traceText, &spans); err != nil {
		return nil, err
	}
	if len(spans) != 3 || len(spans[0].Events) != 1 {
		return nil, errors.New("not a call with two attempts and a retry")
	}
	call, retry := spans[0], spans[0].Events[0]
	const left, width, top, rowHeight = 280, 570, 74, 52
	c := canvas{width: 860, height: top + rowHeight*len(spans) + 14,
		title: "The trace of a refund that was retried",
		about: "One call with two attempts: the first was refused with 429, the second was accepted."}
	whole := call.EndTime.Sub(call.StartTime)
	at := func(t time.Time) float64 { return left + width*float64(t.Sub(call.StartTime))/float64(whole) }
	c.text("strong", 20, 34, c.title)
	for half := time.Duration(0); half <= whole; half += time.Second / 2 {
		x := int(at(call.StartTime.Add(half)))
		c.text("small quiet", x, 58, fmt.Sprintf("%g s", half.Seconds()))
		c.path(fmt.Sprintf("%d,64 %d,72", x, x), "")
	}
	for i, s := range spans {
		y := top + rowHeight*i
		indent := 20
		class := "calm"
		if i > 0 {
			indent = 36
			class = "good"
			if s.Attributes["error.type"] != nil {
				class = "bad"
			}
		}
		c.text("small strong", indent, y+16, s.Name)
		c.text("small quiet", indent, y+34, s.facts())
		c.bar(class, at(s.StartTime), float64(y+8), max(4, at(s.EndTime)-at(s.StartTime)), 18)
	}
	// The wait is between the retry event and the attempt after it.
	y := top + rowHeight + 17
	c.path(fmt.Sprintf("%d,%d %d,%d", int(at(retry.Time))+8, y, int(at(spans[2].StartTime)), y), ` stroke-dasharray="2 5"`)
	c.text("small quiet", left+width/2-90, y-8, fmt.Sprintf("Retry-After: the client waits %.3f s", spans[2].StartTime.Sub(retry.Time).Seconds()))
	return c.picture(), nil
}

// facts are the duration and what the span's attributes say.
func (s span) facts() string {
	facts := []string{s.EndTime.Sub(s.StartTime).Round(time.Millisecond).String()}
	for _, fact := range [...][2]string{
		{"carddata.outcome", "outcome"},
		{"http.response.status_code", "status"}, {"http.request.resend_count", "resend_count"},
	} {
		if value, ok := s.Attributes[fact[0]]; ok {
			facts = append(facts, fmt.Sprint(fact[1], " ", value))
		}
	}
	return strings.Join(facts, ", ")
}
