package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/breaker"
)

func fail(b *breaker.Breaker, times int) (giveUp bool) {
	for range times {
		b.Sent()
		giveUp = b.Settled(true)
	}
	return giveUp
}

// Five failures in a row open it; a success between them starts the count anew.
func TestOpensAfterFiveFailuresInARow(t *testing.T) {
	b := breaker.Breaker{GiveUpAfter: -1}
	fail(&b, 4)
	b.Settled(false)
	fail(&b, 4)
	if b.Open() || b.Limit(8) != 8 || b.Delay() != 0 {
		t.Errorf("open %v, limit %d, delay %v after four failures", b.Open(), b.Limit(8), b.Delay())
	}
	fail(&b, 1)
	if !b.Open() || b.Limit(8) != 0 || b.Delay() < time.Second/2-time.Millisecond || b.Delay() > time.Second {
		t.Errorf("open %v, limit %d, delay %v after five failures", b.Open(), b.Limit(8), b.Delay())
	}
}

// Probes go out after a second, two, four and so on, up to two minutes, or up to
// half of that earlier. A probe that succeeds closes it.
func TestProbesAtGrowingDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.Breaker{GiveUpAfter: -1}
		fail(&b, 5)
		for want := time.Second; want < 20*time.Minute; want *= 2 {
			grown := min(want, 2*time.Minute)
			if d := b.Delay(); d < grown/2 || d > grown {
				t.Errorf("a delay of %v, want %v to %v", d, grown/2, grown)
			}
			time.Sleep(b.Delay())
			if b.Limit(8) != 1 {
				t.Errorf("limit %d when a probe is due", b.Limit(8))
			}
			fail(&b, 1)
		}
		time.Sleep(b.Delay())
		b.Sent()
		if b.Settled(false); b.Open() || b.Limit(8) != 8 {
			t.Errorf("open %v, limit %d after a success", b.Open(), b.Limit(8))
		}
	})
}

// Failures of requests that were in flight when it opened change nothing; a
// success among them closes it.
func TestRequestsInFlightWhenItOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.Breaker{GiveUpAfter: time.Minute}
		for range 8 {
			b.Sent()
		}
		for range 5 {
			b.Settled(true)
		}
		delay := b.Delay()
		for range 2 {
			if b.Settled(true); b.Delay() != delay {
				t.Errorf("the delay became %v from %v", b.Delay(), delay)
			}
		}
		if b.Settled(false); b.Open() {
			t.Error("open after a success")
		}
	})
}

// It gives up when the probe at the end of GiveUpAfter fails, and not before.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []time.Duration{0, 10 * time.Millisecond, time.Minute, 10 * time.Minute} {
			b := breaker.Breaker{GiveUpAfter: after}
			began := time.Now()
			gaveUp := fail(&b, 5)
			for !gaveUp {
				time.Sleep(b.Delay())
				gaveUp = fail(&b, 1)
			}
			if took := time.Since(began); took != after {
				t.Errorf("gave up after %v, want %v", took, after)
			}
		}
		b := breaker.Breaker{GiveUpAfter: -1}
		fail(&b, 5)
		for range 1000 {
			time.Sleep(b.Delay())
			if fail(&b, 1) {
				t.Fatal("gave up, although it was to go on for ever")
			}
		}
	})
}

// Its random delays can be replayed.
func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.Breaker{GiveUpAfter: -1, Jitter: func(below time.Duration) time.Duration { return below / 2 }}
		for range 2 { // it is kept when the breaker closes
			if fail(&b, 5); b.Delay() != 750*time.Millisecond {
				t.Errorf("a delay of %v", b.Delay())
			}
			b.Settled(false)
		}
	})
}
