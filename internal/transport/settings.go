// Package transport is the one way out of the module: settings, credentials,
// the limiter, retries, the evidence of what was sent, and failures. It knows
// no service; bins, refunds and updater tell it what to send and what may be
// repeated.
package transport

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"
)

// Settings are what options change. A service fills in its defaults.
type Settings struct {
	HTTPClient       *http.Client
	Token            TokenSource
	Limiter          Limiter
	Logger           *slog.Logger
	UserAgent        string
	MaxRetries       int
	WaitBase         time.Duration
	WaitMax          time.Duration
	AttemptTimeout   time.Duration
	MaxResponseBytes int64
	InsecureHTTP     bool

	// RepeatUnknown lets a write be repeated although an earlier attempt may
	// have been processed. It is the caller's word that the service removes
	// duplicates.
	RepeatUnknown bool

	headers []header
	perCall bool
	err     error // the first refusal
}

// A header keeps its value in a closure, out of the reach of fmt.
type header struct {
	name  string
	value func() string
}

// Option is exposed as bins.Option, refunds.Option and updater.Option. Its
// method is unexported, so only this module can make one.
type Option interface{ apply(*Settings) }

type option func(*Settings)

func (f option) apply(s *Settings) { f(s) }

// clientOnly makes an option that has no meaning for a single call.
func clientOnly(name string, change func(*Settings)) Option {
	return option(func(s *Settings) {
		if s.perCall {
			s.refuse("%s configures a client and cannot be given to a call", name)
			return
		}
		change(s)
	})
}

func (s *Settings) refuse(format string, args ...any) {
	s.fail(Invalid(format, args...))
}

func (s *Settings) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// with returns the settings changed by opts, leaving s as it was.
func (s *Settings) with(opts []Option, perCall bool) (*Settings, error) {
	if len(opts) == 0 {
		return s, nil
	}
	changed := *s
	changed.headers = slices.Clone(s.headers)
	changed.perCall = perCall
	for i, o := range opts {
		if o == nil {
			changed.refuse("option %d is nil", i+1)
			continue
		}
		o.apply(&changed)
	}
	return &changed, changed.err
}

// Reason is an error in words that are safe to print, for conditions and causes
// whose own texts are not.
func Reason(words string, is ...error) error { return because(words, is...) }

// Invalid is a refusal of an argument, before anything was sent. The text must
// not quote the argument.
func Invalid(format string, args ...any) error {
	return because(fmt.Sprintf(format, args...), ErrInvalidArgument)
}
