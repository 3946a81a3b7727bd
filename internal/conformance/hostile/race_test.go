//go:build race

package hostile_test

// The race detector takes memory of its own.
const racing = true
