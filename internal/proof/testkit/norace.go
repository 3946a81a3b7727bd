//go:build !race

package testkit

// Racing: the race detector takes several times the memory and the time.
const Racing = false
