package flow

import (
	"math"
	"time"
)

const (
	farBelow  = 0.85 // times the highest level that was refused
	compareAt = 2.0 / 3
	leastOdds = 3.0 // as a logarithm: 20 to 1
	leastSeen = 12  // successes
	mostSeen  = 200
	mostShare = 0.6 // of failures by chance
	believed  = time.Minute
	longest   = 16 * time.Minute
)

// A comparison tells load from chance. Below its capacity a service refuses nothing, whereas chance
// does not care how much is in flight. So a third less is sent, until the refusals are clearly as
// many as before, or clearly fewer. Chance is believed for a minute, then for two, and so on, and
// until more is refused.
type comparison struct {
	running bool
	from    time.Time // requests that left before belong to the level before
	refused float64   // level
	before  float64   // the share of refusals lately
	chance  float64   // and over more results: the one if it is chance
	load    float64   // and if it is the load
	odds    float64   // of chance, as a logarithm
	n, bad  int       // results

	until time.Time // chance is believed
	long  time.Duration
	share float64 // of refusals then
}

// begin begins to compare a level with the one that was refused.
func (c *comparison) begin(l *level, refused float64, from time.Time) {
	c.running, c.refused, c.from = true, refused, from
	c.odds, c.n, c.bad, c.until = 0, 0, 0, time.Time{}
	c.before, c.chance = l.share, min(max(l.mean, 0.02), 0.7)
	c.load = c.chance / 10
}

// counts counts a result, and ends the comparison if it is clear.
func (c *comparison) counts(w *Window, f *flight, now time.Time, refused bool) {
	if !c.running || f.left.Before(c.from) {
		return
	}
	if c.n++; refused {
		c.bad++
		c.odds += math.Log(c.chance / c.load)
	} else {
		c.odds += math.Log((1 - c.chance) / (1 - c.load))
	}
	l, share := &w.level, float64(c.bad)/float64(c.n)
	switch {
	case c.odds > leastOdds && c.n-c.bad < leastSeen && share < 1.3*c.before+0.3:
	case c.odds > leastOdds && share < min(mostShare, 1.3*max(c.before, c.chance)+0.05):
		c.long = doubled(c.long)
		c.until, c.share = now.Add(c.long), share
		l.forget()
	case c.odds > leastOdds: // even more than before
		c.running = false
		l.lower(w, f, now)
	case c.odds < -leastOdds, c.n > mostSeen:
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
