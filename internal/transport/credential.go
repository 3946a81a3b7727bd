package transport

import (
	"context"
	"maps"
	"strings"
	"sync"
)

// A TokenSource is declared anew, with the same method, in the packages that
// take one.
type TokenSource interface {
	Token(ctx context.Context) (string, error)
}

const (
	maxToken      = 8 << 10
	maxMerchantID = 128
)

// StaticToken keeps the token in a closure, out of the reach of fmt.
func StaticToken(token string) TokenSource { return staticToken(func() string { return token }) }

type staticToken func() string

func (f staticToken) Token(context.Context) (string, error) { return f(), nil }

// TokenFunc makes a TokenSource of a function.
func TokenFunc(f func(context.Context) (string, error)) TokenSource { return tokenFunc(f) }

type tokenFunc func(context.Context) (string, error)

func (f tokenFunc) Token(ctx context.Context) (string, error) { return f(ctx) }

// checkSource refuses what can be known to be unusable before a call.
func checkSource(source TokenSource) error {
	switch s := source.(type) {
	case nil:
		return Invalid("the token source is nil")
	case tokenFunc:
		if s == nil {
			return Invalid("the token source is nil")
		}
	case staticToken:
		return checkToken(s())
	}
	return nil
}

func checkToken(token string) error {
	switch {
	case token == "":
		return Invalid("the credential is empty")
	case len(token) > maxToken || !isVisible(token):
		return Invalid("the credential is not one run of visible ASCII characters (%d at most)", maxToken)
	}
	return nil
}

// CheckMerchantID refuses what cannot travel as a header of one value. It does
// not echo the id.
func CheckMerchantID(id string) error {
	switch {
	case id == "":
		return Invalid("the merchant id is empty")
	case len(id) > maxMerchantID || !isVisible(id) || strings.Contains(id, ","):
		return Invalid("the merchant id is not one run of visible ASCII characters without a comma (%d at most)", maxMerchantID)
	}
	return nil
}

func isVisible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}

// askToken asks the source and checks its answer. The source's own error stays
// reachable, but its text, which may quote a credential, is not repeated.
func askToken(ctx context.Context, source TokenSource) (string, error) {
	token, err := source.Token(ctx)
	if err != nil {
		return "", because("the token source failed", ErrCredential, err)
	}
	if checkToken(token) != nil {
		return "", because("the token source returned an empty or unprintable credential", ErrCredential)
	}
	return token, nil
}

// A renew asks a source anew for a token that the service refused, and returns
// what replaces it: possibly the same token, when the source has nothing newer.
// All callers whose requests carried the same token share one question.
type renew func(ctx context.Context, source TokenSource, refused string) (string, error)

type flight struct {
	done      chan struct{}
	abandoned bool // the asking caller ended without an answer of the source
	token     string
	err       error
}

// newRenew keeps the tokens in a closure, out of the reach of fmt.
func newRenew() renew {
	var mu sync.Mutex
	flights := map[string]*flight{} // by refused token

	// begin joins the flight for a refused token, or starts it.
	begin := func(refused string) (f *flight, leads bool) {
		mu.Lock()
		defer mu.Unlock()
		// An answer that was refused in its turn is no answer any more.
		maps.DeleteFunc(flights, func(_ string, f *flight) bool { return f.token == refused })
		if f = flights[refused]; f != nil {
			return f, false
		}
		f = &flight{done: make(chan struct{}), abandoned: true}
		flights[refused] = f
		return f, true
	}
	// lead asks the source. An answer that brought nothing new serves only those
	// who wait for it now.
	lead := func(ctx context.Context, source TokenSource, refused string, f *flight) (string, error) {
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			if f.abandoned || f.err != nil || f.token == refused {
				delete(flights, refused)
			}
			close(f.done)
		}()
		token, err := askToken(ctx, source)
		mu.Lock()
		defer mu.Unlock()
		f.token, f.err, f.abandoned = token, err, err != nil && ctx.Err() != nil
		return token, err
	}
	return func(ctx context.Context, source TokenSource, refused string) (string, error) {
		for {
			f, leads := begin(refused)
			if leads {
				return lead(ctx, source, refused, f)
			}
			select {
			case <-f.done:
			case <-ctx.Done():
				return "", ctx.Err()
			}
			if !f.abandoned {
				return f.token, f.err
			}
		}
	}
}
