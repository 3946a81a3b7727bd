//go:build !race

package hostile_test

const racing = false
