//go:build race

package proof

// The race detector takes several times the memory and the time.
const racing = true
