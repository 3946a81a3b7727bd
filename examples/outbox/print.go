package main

import (
	"strconv"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// printable makes text of others fit for a cell of a table.
func printable(text string) string {
	const most = 64
	if cut := []rune(text); len(cut) > most {
		text = string(cut[:most]) + "…"
	}
	return target.Line(text)
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
