// Package browsertest drives the page of the sandbox with a real browser. It is
// a module of its own, so that what it needs never becomes yours.
package browsertest
