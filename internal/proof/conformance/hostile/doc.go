// Package hostile lets the other side send what is made to exhaust: bombs, floods and
// nesting. Each call ends in bounded memory, with a typed error. The matrix has what is slow.
package hostile
