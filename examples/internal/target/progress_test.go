package target

import (
	"strings"
	"testing"
	"unicode/utf8"
)

var facts = []string{"12,445,678 rows", "10,000 rows/s", "30s left", "resumed 3×", "56 requests"}

func TestBarFits(t *testing.T) {
	for width, want := range map[int]string{
		10: "",
		20: "12,445,678 rows",
		40: " 70% [===========      ] 12,445,678 rows",
		59: " 70% [=======    ] 12,445,678 rows, 10,000 rows/s, 30s left",
		79: " 70% [=============      ] 12,445,678 rows, 10,000 rows/s, 30s left, resumed 3×",
		199: " 70% [" + strings.Repeat("=", 28) + strings.Repeat(" ", 12) +
			"] 12,445,678 rows, 10,000 rows/s, 30s left, resumed 3×, 56 requests",
	} {
		if got := barLine(0.7, facts, width); got != want {
			t.Errorf("%d columns: %q", width, got)
		}
	}
	for width := range 300 {
		for _, share := range []float64{-1, 0, 0.7, 1, 1.1} {
			if got := barLine(share, facts, width); utf8.RuneCountInString(got) > width {
				t.Errorf("%d columns: %q", width, got)
			}
		}
	}
	if got := barLine(-1, facts, 79); got != strings.Join(facts, ", ") {
		t.Error(got)
	}
}

// TestBarIsErased follows a terminal that is made narrower while a line is on it.
func TestBarIsErased(t *testing.T) {
	var out strings.Builder
	width := 0 // as where it cannot be found out
	bar := &Bar{out: &out, width: func() int { return width }}
	step := func(want string, f func()) {
		t.Helper()
		out.Reset()
		if f(); out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
	erased := "\r\x1b[J"
	full := barLine(0.7, facts, 79)
	step("above\n", func() { bar.Print("above") })
	step(full, func() { bar.Show(0.7, facts) })
	width = 60
	step("\x1b[A"+erased+barLine(0.7, facts, 59), func() { bar.Show(0.7, facts) })
	width = 20
	step("\x1b[A\x1b[A"+erased+"above\n", func() { bar.Print("above") })
	step(facts[0], func() { bar.Show(0.7, facts) })
	step(erased, bar.Erase)
	step("", bar.Erase)
}
