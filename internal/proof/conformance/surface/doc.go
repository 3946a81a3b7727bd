// Package surface holds what users read against the code: that the three packages have the same
// options and errors, that what the documents name is there, and that their code compiles.
package surface
