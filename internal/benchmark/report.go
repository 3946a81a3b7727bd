package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/template"

	"github.com/carddata/carddata-go/internal/benchmark/process"
)

// A report is what the program writes.
type report struct {
	Date    string    `json:"date"`
	Machine string    `json:"machine"`
	Load    string    `json:"load"`
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

// loadBefore is the load average of the last minute, as far as the system tells.
func loadBefore() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

func (r report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	figures, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	page, err := r.markdown()
	if err != nil {
		return err
	}
	files := map[string][]byte{"results.json": append(figures, '\n'), "README.md": []byte(page)}
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

//go:embed readme.md.tmpl
var readmeTemplate string

// markdown is the page for people.
func (r report) markdown() (string, error) {
	var page, tables bytes.Buffer
	met, all := 0, 0
	var missed []string
	for _, m := range r.Results {
		for _, v := range m.Verdicts {
			all++
			if v.Met {
				met++
			} else {
				missed = append(missed, v.line(m.Row))
			}
		}
		fmt.Fprintf(&tables, "## %s\n\n%s\n\n", m.Row, m.Work)
		m.table(&tables)
		tables.WriteByte('\n')
	}
	t, err := template.New("readme").Parse(readmeTemplate)
	if err != nil {
		return "", err
	}
	err = t.Execute(&page, map[string]any{
		"Rounds": r.Rounds, "Date": r.Date, "Machine": r.Machine, "Load": r.Load, "Short": r.short(), "Curves": len(r.curves()) > 0,
		"Met": met, "All": all, "Missed": missed, "Tables": strings.TrimSpace(tables.String()),
	})
	text := page.String()
	if r.Quick {
		text = strings.Replace(text, "\n\n", "\n\n**A quick run: these figures mean little.**\n\n", 1)
	}
	return text, err
}

// short is what most people ask for.
func (r report) short() []string {
	var all []string
	for _, ask := range []struct{ row, unit, of, peer, what string }{
		{"decode", "ns", library + ", documented", "encoding/json, documented", "Decoding a response of 50 cards takes %s × the time of encoding/json."},
		{"decode", "ns", library + ", documented", "encoding/json/v2, documented", "Decoding a response of 50 cards takes %s × the time of encoding/json/v2."},
		{"lookup", "ns", library, byHand, "A lookup of 50 cards, without a network, takes %s × the time of hand-written net/http and encoding/json."},
		{"tiny-over-loopback", "ns", library, byHand, "A lookup of one card over loopback takes %s × the time of hand-written net/http."},
		{"tiny-over-loopback", "allocs", library, byHand, "A lookup of one card over loopback makes %s × the allocations of hand-written net/http."},
		{"submit", "ns", library, byHand, "A refund takes %s × the time of hand-written net/http, each over a new connection."},
		{"bulk-32", "% of the bound", lookupAll, ownLoop, "LookupAll, with 32 requests in flight, does %s × the work of a loop over Lookup in the same time."},
		{"bulk-32", "% of the bound", lookupAll, process.LoopOver + byHand, "LookupAll, with 32 requests in flight, does %s × the work of a loop over hand-written net/http in the same time."},
	} {
		for _, m := range r.Results {
			if m.Row != ask.row {
				continue
			}
			own, peer := m.figure(ask.of, ask.unit), m.figure(ask.peer, ask.unit)
			if own == nil || peer == nil {
				continue
			}
			if ratio, ok := paired(own.Rounds, peer.Rounds); ok {
				all = append(all, fmt.Sprintf(ask.what, ratio))
			}
		}
	}
	return all
}

// line is of the table of targets.
func (v verdict) line(row string) string {
	verdict := "met"
	if !v.Met {
		verdict = "**missed**"
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", row, v.Target, v.Measured, verdict)
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
		fmt.Fprintf(b, " %s |", unitName(unit))
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
				fmt.Fprintf(b, " %s |", f.Spread.in(unit))
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

// unitName is what people read: nanoseconds are shown in the unit that fits.
func unitName(unit string) string {
	if unit == "ns" {
		return "time"
	}
	return unit
}

// in writes the median with its bounds, and a time with its unit.
func (s spread) in(unit string) string {
	if unit != "ns" {
		return s.String()
	}
	scale, name := 1.0, "ns"
	for _, larger := range []string{"µs", "ms", "s"} {
		if s.Median < 1000*scale {
			break
		}
		scale, name = 1000*scale, larger
	}
	return spread{s.Median / scale, s.Low / scale, s.High / scale}.with(" " + name)
}

// String writes the median with its bounds.
func (s spread) String() string { return s.with("") }

func (s spread) with(unit string) string {
	median, low, high := number(s.Median), number(s.Low), number(s.High)
	if low == median && high == median {
		return median + unit
	}
	return fmt.Sprintf("%s%s (%s–%s)", median, unit, low, high)
}
