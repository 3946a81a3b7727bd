// Package browsertest drives the page of the sandbox with a real browser. It is a separate
// module, so that its dependencies are not yours.
package browsertest
