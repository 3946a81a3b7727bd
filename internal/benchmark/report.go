package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A report is what the program writes.
type report struct {
	Machine string    `json:"machine"`
	Rounds  int       `json:"rounds"`
	Quick   bool      `json:"quick"`
	Results []*result `json:"results"`
}

// thisMachine is the kind of machine, as far as the system tells.
func thisMachine() string {
	kind := ""
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, after, _ := strings.Cut(string(info), "model name")
		name, _, _ := strings.Cut(after, "\n")
		kind = strings.Trim(name, "\t :") + ", "
	}
	return fmt.Sprintf("%s%d cores, %s/%s, %s", kind, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

func (r report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	figures, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	files := map[string][]byte{"results.json": append(figures, '\n'), "results.md": []byte(r.markdown())}
	if curves := r.curves(); len(curves) > 0 {
		if files["growth.svg"], err = drawCurves(curves); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r report) markdown() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Medians of %d rounds on %s.\n", r.Rounds, r.Machine)
	if r.Quick {
		b.WriteString("\n**A quick run: these figures mean little.**\n")
	}
	met, all := 0, 0
	for _, m := range r.Results {
		for _, v := range m.Verdicts {
			all++
			if v.Met {
				met++
			}
		}
	}
	fmt.Fprintf(&b, "\n## Targets: %d of %d met\n\n| work | target | measured | |\n|---|---|---:|---|\n", met, all)
	for _, m := range r.Results {
		for _, v := range m.Verdicts {
			verdict := "met"
			if !v.Met {
				verdict = "**missed**"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", m.Row, v.Target, v.Measured, verdict)
		}
	}
	for _, m := range r.Results {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", m.Row, m.Work)
		m.table(&b)
	}
	return b.String()
}

// table has a line for each contestant, and a column and a ratio for each unit.
func (m *result) table(b *bytes.Buffer) {
	units, contestants := m.units(), m.contestants()
	ratio := library + " / this"
	if m.Growth != nil {
		ratio = "this / smallest"
	}
	b.WriteString("| |")
	for _, unit := range units {
		fmt.Fprintf(b, " %s |", unit)
		if m.hasRatio(unit) {
			fmt.Fprintf(b, " %s |", ratio)
		}
	}
	b.WriteString("\n|---|")
	for _, unit := range units {
		b.WriteString("---:|")
		if m.hasRatio(unit) {
			b.WriteString("---:|")
		}
	}
	b.WriteByte('\n')
	for _, contestant := range contestants {
		fmt.Fprintf(b, "| %s |", contestant)
		for _, unit := range units {
			f := m.figure(contestant, unit)
			switch {
			case f == nil:
				b.WriteString(" |")
			default:
				fmt.Fprintf(b, " %s |", f.Spread)
			}
			switch {
			case !m.hasRatio(unit):
			case f == nil || f.Ratio == nil:
				b.WriteString(" |")
			default:
				fmt.Fprintf(b, " %s × |", f.Ratio)
			}
		}
		b.WriteByte('\n')
	}
}

func (m *result) hasRatio(unit string) bool {
	return slices.ContainsFunc(m.Figures, func(f *figure) bool { return f.Unit == unit && f.Ratio != nil })
}

func (m *result) units() []string {
	var all []string
	for _, f := range m.Figures {
		if !slices.Contains(all, f.Unit) {
			all = append(all, f.Unit)
		}
	}
	// Time first, as it is what one looks for.
	slices.SortStableFunc(all, func(a, b string) int { return rank(a == "ns") - rank(b == "ns") })
	return all
}

// contestants has the library first, and sizes in order.
func (m *result) contestants() []string {
	var all []string
	if g := m.Growth; g != nil {
		for _, series := range g.Series {
			for _, size := range g.Sizes {
				all = append(all, g.contestant(series, size))
			}
		}
	}
	for _, f := range m.Figures {
		if !slices.Contains(all, f.Contestant) {
			all = append(all, f.Contestant)
		}
	}
	if m.Growth == nil {
		slices.SortStableFunc(all, func(a, b string) int {
			return rank(strings.HasPrefix(a, library)) - rank(strings.HasPrefix(b, library))
		})
	}
	return all
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// String writes the median with its bounds.
func (s spread) String() string {
	median, low, high := number(s.Median), number(s.Low), number(s.High)
	if low == median && high == median {
		return median
	}
	return fmt.Sprintf("%s (%s–%s)", median, low, high)
}
