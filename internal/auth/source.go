package auth

import (
	"context"
	"strings"

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

// NewSource returns a source that may be asked by many calls at once. It refuses a source that can
// never work.
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

// A serial source asks a source of the caller one call at a time: it may keep a token without a
// lock, and does not fetch many at once. Who waits for a turn stops at the end of its context.
type serial struct {
	source Source
	turn   chan struct{} // full while the source is being asked
}

func oneAtATime(source Source) *serial {
	return &serial{source: source, turn: make(chan struct{}, 1)}
}

func (s *serial) Token(ctx context.Context) (string, error) { return s.question(ctx, "") }

func (s *serial) question(ctx context.Context, refused string) (string, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-s.turn }()
	return question(ctx, s.source, refused)
}
