package program

import (
	"testing"
	"time"
)

// WaitFor waits for a condition that a program brings about.
func WaitFor(t testing.TB, condition func() bool) {
	t.Helper()
	for !condition() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test ended first")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
