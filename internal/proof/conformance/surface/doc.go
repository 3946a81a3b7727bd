// Package surface holds what users read against the code: the exported names, the
// interface's field tables, the parity of the three packages, and the README.
package surface
