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
		return "", &reason{words: "the token source failed", is: []error{ErrCredential, err}}
	}
	if checkToken(token) != nil {
		return "", &reason{words: "the token source returned an empty or unprintable credential", is: []error{ErrCredential}}
	}
	return token, nil
}

// A renew asks a source anew for a token that the service refused, and returns
// what replaces it: possibly the same token, when the source has nothing newer.
// All callers whose requests carried the same token share one question.
type renew func(ctx context.Context, source TokenSource, refused string) (string, error)

type flight struct {
	done  chan struct{}
	token string
	err   error
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
		f = &flight{done: make(chan struct{}), err: &reason{words: "the token source failed", is: []error{ErrCredential}}}
		flights[refused] = f
		return f, true
	}
	end := func(refused string, f *flight, token string, err error) {
		mu.Lock()
		defer mu.Unlock()
		f.token, f.err = token, err
		// A refresh that failed, or changed nothing, answers only those who wait for it now.
		if err != nil || token == refused {
			delete(flights, refused)
		}
	}
	return func(ctx context.Context, source TokenSource, refused string) (string, error) {
		for {
			f, leads := begin(refused)
			if leads {
				defer close(f.done)
				token, err := askToken(ctx, source)
				end(refused, f, token, err)
				return token, err
			}
			select {
			case <-f.done:
			case <-ctx.Done():
				return "", ctx.Err()
			}
			if f.err == nil {
				return f.token, nil
			}
			// Whoever asked may have failed for reasons of its own, such as its
			// deadline, so the next caller asks again.
		}
	}
}
