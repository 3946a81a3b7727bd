package auth

import (
	"context"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/await"
	"github.com/carddata/carddata-go/internal/fault"
)

// A Source returns tokens. The packages that take one declare it with the same method.
type Source interface {
	Token(ctx context.Context) (string, error)
}

const maxToken = 8 << 10 // servers commonly bound the whole header by 8 KiB

// Static keeps the token in a closure, which hides it from fmt.
func Static(token string) Source { return staticToken(func() string { return token }) }

type staticToken func() string

func (f staticToken) Token(context.Context) (string, error) { return f(), nil }

// Func makes a TokenSource from a function, which gets one call at a time.
func Func(f func(context.Context) (string, error)) Source {
	if f == nil {
		return nil
	}
	return oneAtATime(tokenFunc(f))
}

type tokenFunc func(context.Context) (string, error)

func (f tokenFunc) Token(ctx context.Context) (string, error) { return f(ctx) }

// checkToken names the usual mistakes in a copied token: a "Bearer " prefix, and the line
// break of a file. Without this check, the first gives a 401, and the second an error of
// net/http that quotes the token.
func checkToken(token string) error {
	switch s := strings.TrimSpace(token); {
	case token == "":
		return fault.Invalid("the credential is empty")
	case len(s) >= 6 && strings.EqualFold(s[:6], "Bearer") && (len(s) == 6 || !IsVisible(s[6:7])):
		return fault.Invalid("the credential begins with \"Bearer \", which the library adds itself")
	case strings.TrimRight(token, "\r\n") != token:
		return fault.Invalid("the credential ends in a line break, as a file does")
	case len(token) > maxToken || !IsVisible(token):
		return fault.Invalid("the credential is not one run of visible ASCII characters (%d at most)", maxToken)
	}
	return nil
}

// IsVisible reports whether a header carries a value unchanged: net/http trims spaces, and a
// line break begins another header.
func IsVisible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}

// NewSource returns a source that returns by the end of its context, which the sources of this
// package do. It refuses a source that can never work.
func NewSource(source Source) (Source, error) {
	switch s := source.(type) {
	case nil:
		return nil, fault.Invalid("the token source is nil")
	case staticToken:
		return s, checkToken(s())
	case *cachedToken:
		return s, fault.Require(s.fetch != nil, "the token source is nil")
	case *serial:
		return s, nil
	}
	return oneAtATime(source), nil
}

// Ask asks a source and checks the token. With a refused token it asks for a replacement,
// which may be the same token if the source has nothing newer. The source's own error stays
// reachable, but its text is not repeated, because it may quote a credential.
func Ask(ctx context.Context, source Source, refused string) (token string, failed *fault.Verdict, err error) {
	token, err = question(ctx, source, refused)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", fault.CredentialFailed, fault.NewError("the token source did not return in time", fault.ErrCredential, err)
	case err != nil:
		return "", fault.CredentialFailed, fault.NewError("the token source failed", fault.ErrCredential, err)
	}
	if err := checkToken(token); err != nil {
		return "", fault.CredentialUnusable, fault.NewError("the token source returned an unusable token: "+err.Error(), fault.ErrCredential)
	}
	return token, nil, nil
}

// question tells the source about the refused token, if it has a method for that, and asks
// for a token.
func question(ctx context.Context, source Source, refused string) (string, error) {
	if s, ok := source.(*serial); ok {
		return s.question(ctx, refused)
	}
	if told, ok := source.(interface{ Refused(token string) }); ok && refused != "" {
		told.Refused(refused)
	}
	return source.Token(ctx)
}

// A serial source is a source of the caller that gets one call at a time. Its calls return by
// the end of their context even if the source does not. Many sources ignore their context: the
// sources of x/oauth2 have none, and wait as long as their http.Client does.
//
// So the source runs on a goroutine. A source that hangs holds one goroutine, and later calls
// wait for it. This costs nothing with a source that keeps its token. A source that fetches a
// token for each call gets slower, which spares its token endpoint. Calls do not share a
// result, because the source may use the context of each.
//
// If calls come faster than the source answers, each would get its turn when its time is nearly up,
// and leave before it has a token. So one that has waited, and has little more time left than the
// source took last, leaves its turn to the next.
type serial struct {
	source Source
	asking chan struct{} // full while the source is being called
	took   time.Duration // by the last call of the source; guarded by asking
}

func oneAtATime(source Source) *serial {
	return &serial{source: source, asking: make(chan struct{}, 1)}
}

func (s *serial) Token(ctx context.Context) (string, error) { return s.question(ctx, "") }

func (s *serial) question(ctx context.Context, refused string) (string, error) {
	arrived := time.Now()
	select {
	case s.asking <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	began := time.Now()
	hasWaited := began.Sub(arrived) > s.took/20 // less is nothing beside the call itself
	if deadline, ok := ctx.Deadline(); ok && hasWaited && deadline.Sub(began) < s.took*3/2 {
		<-s.asking
		<-ctx.Done()
		return "", ctx.Err()
	}
	// If the caller gives up, the place stays taken until the source returns, so that the
	// next call waits instead of calling in parallel.
	return await.NewFuture(func() (string, error) { return question(ctx, s.source, refused) }, func(string, error) {
		s.took = time.Since(began)
		<-s.asking
	}).Wait(ctx)
}
