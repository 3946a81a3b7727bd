// Package secrets plants canaries wherever the library takes something in, and looks
// for them in all that it prints: errors, logs, values, panics and files.
package secrets
