package bulk

import (
	"testing"
	"testing/synctest"
	"time"

	flow "github.com/carddata/carddata-go/internal/oldflow"
)

// A loop gives up when the outage, or its own part of it, has lasted.
func TestGiveUpAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := flow.State{Paused: true, Since: time.Now()}
		time.Sleep(time.Hour)
		for name, test := range map[string]struct {
			state flow.State
			after time.Duration
			began time.Time
			want  time.Time
		}{
			"in an outage":         {down, 2 * time.Hour, time.Time{}, down.Since.Add(2 * time.Hour)},
			"began in an outage":   {down, 2 * time.Hour, time.Now(), time.Now().Add(2 * time.Hour)},
			"never":                {down, -1, time.Now(), time.Time{}},
			"a service that works": {flow.State{Since: down.Since}, time.Hour, time.Now(), time.Time{}},
			"at once":              {down, 0, time.Time{}, down.Since},
		} {
			if got := GiveUpAt(test.state, test.after, test.began); !got.Equal(test.want) {
				t.Errorf("%s: %v, want %v", name, got, test.want)
			}
		}
	})
}

// The earliest time counts, and no time is none.
func TestAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		<-At(now.Add(time.Hour), time.Time{}, now.Add(time.Minute))
		if took := time.Since(now); took != time.Minute {
			t.Errorf("after %v", took)
		}
		if At(time.Time{}) != nil {
			t.Error("no time is none")
		}
	})
}
