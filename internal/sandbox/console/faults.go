package console

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
)

// A rule switches a fault on for the next requests of an area, or for a
// percentage of them.
type rule struct {
	Fault      string       `json:"fault"`
	Area       sandbox.Area `json:"area,omitempty"` // "": all three
	Next       int          `json:"next,omitempty"`
	Percent    int          `json:"percent,omitempty"`
	RetryAfter *int         `json:"retry_after,omitempty"` // seconds
	Delay      *int         `json:"delay,omitempty"`       // seconds
	Status     *int         `json:"status,omitempty"`
}

const (
	rateLimited     = "rate_limited"
	dropAfterAccept = "drop_after_accept"
	slow            = "slow"
	serverError     = "server_error"
	truncated       = "truncated"
)

const (
	maxNext    = 1_000_000
	maxSeconds = 3600
)

// Defaults of a rule's details.
const (
	retryAfter = 1
	delay      = 3
)

// check completes r with defaults.
func (r *rule) check() error {
	if !slices.Contains([]sandbox.Area{"", sandbox.Bins, sandbox.Refunds, sandbox.Updater}, r.Area) {
		return errors.New("area must be bins, refunds or updater, or left out for all three")
	}
	if r.Next < 0 || r.Next > maxNext || r.Percent < 0 || r.Percent > 100 || r.Next > 0 && r.Percent > 0 {
		return fmt.Errorf("either next must be a number up to %d or percent one up to 100; 0 switches the fault off", maxNext)
	}
	details := map[string]struct {
		member        **int
		standard      int
		lowest, limit int
	}{
		rateLimited: {&r.RetryAfter, retryAfter, 0, maxSeconds},
		slow:        {&r.Delay, delay, 1, maxSeconds},
		serverError: {&r.Status, http.StatusServiceUnavailable, 500, 599},
	}
	own, hasOwn := details[r.Fault]
	if !hasOwn && r.Fault != dropAfterAccept && r.Fault != truncated {
		return errors.New("fault must be rate_limited, drop_after_accept, slow, server_error or truncated")
	}
	for fault, d := range details {
		if fault != r.Fault && *d.member != nil {
			return errors.New("retry_after goes with rate_limited, delay with slow and status with server_error only")
		}
	}
	if !hasOwn {
		return nil
	}
	if *own.member == nil {
		*own.member = &own.standard
	}
	if n := **own.member; n < own.lowest || n > own.limit {
		return fmt.Errorf("retry_after and delay are seconds up to %d, and status is 500 to 599", maxSeconds)
	}
	return nil
}

func (r *rule) befalls(area sandbox.Area) sandbox.Fault {
	switch r.Fault {
	case rateLimited:
		return sandbox.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Duration(*r.RetryAfter) * time.Second}
	case dropAfterAccept:
		return sandbox.Fault{DropAfter: true}
	case slow:
		return sandbox.Fault{HeaderDelay: time.Duration(*r.Delay) * time.Second}
	case serverError:
		return sandbox.Fault{Status: *r.Status}
	}
	// Somewhere inside the shortest answer that the area gives.
	return sandbox.Fault{Truncate: map[sandbox.Area]int{sandbox.Bins: 50, sandbox.Refunds: 1, sandbox.Updater: 100}[area]}
}

// faults are the rules in force, at most one for each fault and area.
type faults []rule

// set puts r in place of the rule for the same fault and area.
func (f *faults) set(r rule) {
	same := func(old rule) bool { return old.Fault == r.Fault && old.Area == r.Area }
	at := slices.IndexFunc(*f, same)
	switch {
	case r.Next == 0 && r.Percent == 0:
		*f = slices.DeleteFunc(*f, same)
	case at >= 0:
		(*f)[at] = r
	default:
		*f = append(*f, r)
	}
}

// take returns the name of the fault that befalls the next request of area, and
// what it does. A rule for the next requests goes before one for a percentage,
// and an older before a younger one.
func (f *faults) take(area sandbox.Area) (string, sandbox.Fault) {
	if area == "" {
		return "", sandbox.Fault{}
	}
	applies := func(r rule) bool { return r.Area == "" || r.Area == area }
	for i, r := range *f {
		if !applies(r) || r.Next == 0 {
			continue
		}
		if r.Next--; r.Next == 0 {
			*f = slices.Delete(*f, i, i+1)
		} else {
			(*f)[i] = r
		}
		return r.Fault, r.befalls(area)
	}
	for _, r := range *f {
		if applies(r) && rand.IntN(100) < r.Percent {
			return r.Fault, r.befalls(area)
		}
	}
	return "", sandbox.Fault{}
}
