//go:build race

package conformance_test

// The race detector takes memory of its own.
const racing = true
