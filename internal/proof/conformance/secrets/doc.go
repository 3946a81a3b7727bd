// Package secrets plants canaries in everything that the library takes in, and looks
// for them in all that it prints: errors, logs, values, panics and files.
package secrets
