package main

import (
	_ "embed"
	"strings"
)

//go:embed survivors.txt
var survivorsText string

// survivors are the mutants that no test can or need kill, with their reasons: each
// stands in the indented line after the name.
func survivors() map[string]string {
	known, name := map[string]string{}, ""
	for line := range strings.Lines(survivorsText) {
		if reason, indented := strings.CutPrefix(line, "\t"); indented {
			known[name] = strings.TrimSpace(reason)
		} else {
			name = strings.TrimSpace(line)
		}
	}
	return known
}
