package console

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// A rule switches a fault on for the next requests, or for a percentage of them.
type rule struct {
	ID      int          `json:"id"`
	Name    string       `json:"fault"`
	Area    sandbox.Area `json:"area,omitempty"` // "": all three
	Next    int          `json:"next,omitempty"` // either Next or Percent is set
	Percent int          `json:"percent,omitempty"`
	Path    string       `json:"path,omitempty"` // escaped; with * at its end, a prefix
	fault   sandbox.Fault
}

// A setting is a rule as the API receives it, with the details of its fault.
type setting struct {
	rule
	sandbox.Fault
	RetryAfter float64 `json:"retry_after"` // seconds, like Delay
	Delay      float64 `json:"delay"`
}

const (
	slow      = "slow"
	truncated = "truncated"
	custom    = "custom"
)

// named are the details of each named fault. Some are the sandbox's own choice, such as the
// status of a job that is not ready.
var named = map[string]string{
	"rate_limited":       `{"status":429,"retry_after":1}`,
	"drop_before_accept": `{"drop":true}`,
	"drop_after_accept":  `{"drop":true,"process":true}`,
	slow:                 `{"delay":3}`,
	"server_error":       `{"status":503}`,
	"job_not_ready": `{"status":409,"area":"updater","body":` +
		`"{\"error\":{\"code\":\"job_not_ready\",\"message\":\"the result of the job is not ready\",\"details\":{}}}"}`,
	truncated: `{}`,
	custom:    `{}`,
}

const (
	maxSeconds = 3600
	maxNext    = 1_000_000
)

// check refuses values that make no sense.
func (s *setting) check() error {
	seconds := func(n float64) bool { return n >= 0 && n <= maxSeconds }
	switch {
	case !slices.Contains([]sandbox.Area{"", sandbox.Bins, sandbox.Refunds, sandbox.Updater}, s.Area):
		return errors.New("area must be bins, refunds or updater, or left out for all three")
	case (s.Next == 0) == (s.Percent == 0):
		return errors.New("either next or percent is needed: how many requests meet the fault")
	case s.Next < 0 || s.Next > maxNext:
		return fmt.Errorf("next must be 1 to %d", maxNext)
	case s.Percent < 0 || s.Percent > 100:
		return errors.New("percent must be 1 to 100")
	case s.Status != 0 && (s.Status < 200 || s.Status > 599):
		return errors.New("status must be 200 to 599")
	case !seconds(s.Delay) || !seconds(s.RetryAfter) && s.RetryAfter != -1:
		return fmt.Errorf("delay and retry_after must be 0 to %d seconds, or retry_after -1 for none", maxSeconds)
	}
	return nil
}

// complete returns the rule with its fault.
func (s *setting) complete() rule {
	s.rule.fault = s.Fault
	s.rule.fault.Delay = time.Duration(s.Delay * float64(time.Second))
	s.rule.fault.RetryAfter = time.Duration(s.RetryAfter * float64(time.Second))
	return s.rule
}

func (r *rule) applies(area sandbox.Area, path string) bool {
	prefix, open := strings.CutSuffix(r.Path, "*")
	return (r.Area == "" || r.Area == area) && (r.Path == "" || path == r.Path || open && strings.HasPrefix(path, prefix))
}

// faultFor returns the fault of a request of area.
func (r *rule) faultFor(area sandbox.Area) sandbox.Fault {
	f := r.fault
	if r.Name == truncated && f.Truncate == 0 {
		// Somewhere in the middle of the area's shortest response.
		f.Truncate = map[sandbox.Area]int{sandbox.Bins: 50, sandbox.Refunds: 1, sandbox.Updater: 100}[area]
	}
	return f
}

// faults are the rules in force: at most one of each name for an area and path, and any
// number of custom ones.
type faults struct {
	rules []rule
	last  int // id
}

// set adds r, or replaces the rule with the same name, area and path.
func (f *faults) set(r rule) {
	at := slices.IndexFunc(f.rules, func(old rule) bool {
		return r.Name != custom && old.Name == r.Name && old.Area == r.Area && old.Path == r.Path
	})
	f.last++
	r.ID = f.last
	if at >= 0 {
		f.rules[at] = r
	} else {
		f.rules = append(f.rules, r)
	}
}

func (f *faults) remove(id int) bool {
	before := len(f.rules)
	f.rules = slices.DeleteFunc(f.rules, func(r rule) bool { return r.ID == id })
	return len(f.rules) < before
}

// take returns the fault of the next request of area, and its name. Rules for the next
// requests come before those for a percentage, and older ones before newer ones.
func (f *faults) take(area sandbox.Area, path string) (string, sandbox.Fault) {
	if area == "" {
		return "", sandbox.Fault{}
	}
	for i := range f.rules {
		r := f.rules[i]
		if r.Next == 0 || !r.applies(area, path) {
			continue
		}
		if f.rules[i].Next--; r.Next == 1 {
			f.rules = slices.Delete(f.rules, i, i+1)
		}
		return r.Name, r.faultFor(area)
	}
	for _, r := range f.rules {
		if rand.IntN(100) < r.Percent && r.applies(area, path) {
			return r.Name, r.faultFor(area)
		}
	}
	return "", sandbox.Fault{}
}
