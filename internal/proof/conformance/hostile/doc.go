// Package hostile lets the other side send what is made to exhaust: bombs, floods,
// nesting and trickles. Each call ends in bounded time and memory, with a typed error.
package hostile
