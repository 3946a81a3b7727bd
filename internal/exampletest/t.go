// Package exampletest lets Example functions use what takes a *testing.T.
package exampletest

import "fmt"

// T stands in for *testing.T, which an example does not have.
type T struct{ cleanups []func() }

func (*T) Helper() {}

// Cleanup keeps f for End.
func (t *T) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// Fatalf panics, which fails the example.
func (*T) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// End runs what was given to Cleanup, the last first.
func (t *T) End() {
	for len(t.cleanups) > 0 {
		last := len(t.cleanups) - 1
		f := t.cleanups[last]
		t.cleanups = t.cleanups[:last]
		f()
	}
}
