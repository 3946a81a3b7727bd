package refunds

import (
	"errors"
	"net/http"
	"slices"

	"github.com/carddata/carddata-go/internal/transport"
)

// A scope says which records would fail in the way that one did.
type scope int

const (
	ofRecord  scope = iota // none: it was accepted, or rejected for its content
	ofAccount              // those of its account, and perhaps all
	ofAll
)

func scopeOf(r *record) scope {
	is := func(conditions ...error) bool {
		return slices.ContainsFunc(conditions, func(c error) bool { return errors.Is(r.err, c) })
	}
	switch failure, _ := errors.AsType[*Error](r.err); {
	case r.err == nil:
		return ofRecord
	case len(r.own) > 0 && is(ErrCredential, ErrUnauthorized), is(ErrLocalLimit) && transport.HasLimiter(r.own):
		return ofAccount // its own token source, header or limiter
	case !is(ErrRejected):
		return ofAll
	case is(ErrForbidden, ErrNotFound) && failure.StatusCode != http.StatusProxyAuthRequired:
		return ofAccount
	case is(ErrRateLimited, ErrUnauthorized, ErrForbidden, ErrRedirect, ErrServer):
		return ofAll
	}
	return ofRecord
}

// accounts tells the failures of one account among several from those of all: in a
// run of failures they count once. As long as there is only one account, its failures
// count as those of all.
type accounts struct {
	first   string
	several bool
	failed  map[string]bool // since the last success
	shared  bool            // a failure since then concerned all accounts
	worked  bool            // some account was not refused
}

// add notes the account of a record. It reports whether the failures so far were
// those of one account and this is another one.
func (a *accounts) add(id string) (another bool) {
	if a.failed == nil {
		a.first, a.failed = id, map[string]bool{}
	}
	if a.several || id == a.first {
		return false
	}
	a.several = true
	return a.onlyFirst()
}

func (a *accounts) onlyFirst() bool { return a.failed[a.first] && !a.shared }

// isOne reports whether one account has failed and no other is known yet.
func (a *accounts) isOne() bool { return !a.several && a.onlyFirst() }

// repeats notes a result. It reports whether that is a further failure of an account
// that has failed before, which says nothing new about the service.
func (a *accounts) repeats(id string, s scope) bool {
	switch s {
	case ofRecord:
		clear(a.failed)
		a.shared, a.worked = false, true
	case ofAll:
		a.shared = true
	case ofAccount:
		if a.several && a.failed[id] {
			return true
		}
		a.failed[id] = true
	}
	return false
}
