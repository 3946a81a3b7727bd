package main

import (
	"fmt"
	"strings"
)

// A growth is the same work at several sizes. Its contestants are named by
// series and size.
type growth struct {
	Unit   string   `json:"unit"` // of the sizes
	Series []string `json:"series"`
	Sizes  []int    `json:"sizes"`
	memory float64  // in MiB, that no size may exceed; 0: not told
}

func (g *growth) contestant(series string, size int) string {
	return fmt.Sprintf("%s, %s", series, sizeName(size, g.Unit))
}

// smallest is the contestant that others of the same series are compared with.
func (g *growth) smallest(contestant string) string {
	series, _, _ := strings.Cut(contestant, ", ")
	return g.contestant(series, g.Sizes[0])
}

// targets say that no size takes more time for a unit than a smaller one, but
// for a tenth, and that none takes more memory than its bound.
func (g *growth) targets() []target {
	var all []target
	smallest := g.contestant(g.Series[0], g.Sizes[0])
	for _, size := range g.Sizes {
		if name := g.contestant(g.Series[0], size); name != smallest {
			all = append(all, target{unit: "ns", of: name, peer: smallest, bound: atMost(1.10)})
		}
	}
	if g.memory > 0 {
		for _, size := range g.Sizes {
			all = append(all, target{unit: "MiB", of: g.contestant(g.Series[0], size), bound: atMost(g.memory)})
		}
	}
	return all
}

// sizeName writes a size in full words.
func sizeName(size int, unit string) string {
	if unit == "MiB" && size >= 1024 {
		return fmt.Sprintf("%d GiB", size/1024)
	}
	digits := fmt.Sprint(size)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return strings.TrimSpace(digits + " " + unit)
}
