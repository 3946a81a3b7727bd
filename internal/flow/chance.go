package flow

import (
	"math"
	"time"
)

const (
	farBelow  = 0.85 // times the highest level that was refused
	compareAt = 2.0 / 3
	underLoad = 0.1 // of the share of refusals is left when less is sent
	leastOdds = 3.0 // as a logarithm: 20 to 1
	leastSeen = 12  // successes
	mostSeen  = 200
	mostShare = 0.6 // of failures by chance
	believed  = time.Minute
	longest   = 16 * time.Minute
)

// A comparison tells load from chance. Below its capacity a service refuses nothing, whereas chance
// does not care how much is in flight. So a third less is sent, until the refusals are clearly fewer, or
// clearly not. If they are not, that is chance, unless they are more than half. Chance is believed for a minute, then
// for two, and so on, and until more is refused.
type comparison struct {
	running bool
	from    time.Time // requests that left before belong to the level before
	refused float64   // level
	chance  float64   // the share of refusals before
	same    float64   // odds of as many refusals against fewer, as a logarithm
	n, bad  int       // results

	until time.Time // chance is believed
	long  time.Duration
	share float64 // of refusals then
}

// begin begins to compare a level with the one that was refused.
func (c *comparison) begin(l *level, refused float64, from time.Time) {
	c.running, c.refused, c.from = true, refused, from
	c.same, c.n, c.bad, c.until = 0, 0, 0, time.Time{}
	c.chance = min(max(l.mean, 0.02), 0.7)
}

// counts counts a result, and ends the comparison if it is clear.
func (c *comparison) counts(w *Window, f *flight, now time.Time, refused bool) {
	if !c.running || f.left.Before(c.from) {
		return
	}
	fewer := underLoad * c.chance
	if c.n++; refused {
		c.bad++
		c.same += math.Log(c.chance / fewer)
	} else {
		c.same += math.Log((1 - c.chance) / (1 - fewer))
	}
	l, share := &w.level, float64(c.bad)/float64(c.n)
	isSame := c.same > leastOdds && c.n-c.bad >= leastSeen
	switch {
	case isSame && share < mostShare:
		c.long = doubled(c.long)
		c.until, c.share = now.Add(c.long), share
		l.forget()
	case isSame:
		c.running = false
		l.lower(w, f, now)
	case c.same < -leastOdds, c.n > mostSeen:
		c.running, c.long = false, 0
		l.highest = c.refused
		l.setTo(w, now, l.now, c.refused)
	}
}

// explains reports whether chance explains the share of refusals.
func (c *comparison) explains(share float64, now time.Time) bool {
	return now.Before(c.until) && share <= min(1.5*c.share+0.2, (1+c.share)/2)
}

// doubled is the time for which a finding is believed, if it was found again.
func doubled(before time.Duration) time.Duration { return min(max(2*before, believed), longest) }
