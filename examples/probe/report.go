package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/carddata/carddata-go/internal/probe"
)

// A report is what a run came to, for people.
type report struct {
	Service string // host names
	Date    string
	Mode    string
	Stopped string
	Points  []probe.Point
	Offered []string // TLS versions and ALPN of each area
	Options string
	Letter  string
}

const widest = 60 // of the answers, in characters

// print writes the table for a terminal.
func (r report) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POINT\tSTATE\tANSWER\tASSUMPTION")
	for _, p := range r.Points {
		answer := strings.Join(p.Answer, ", ")
		if answer == "" {
			answer = p.Bound
		}
		if r := []rune(answer); len(r) > widest {
			answer = string(r[:widest-1]) + "…" // -json and -html have it whole
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.ID, p.State, answer, held(p))
	}
	table.Flush()
	if len(r.Offered) > 0 {
		fmt.Fprintf(w, "\nconnections\n  %s\n", strings.Join(r.Offered, "\n  "))
	}
	if r.Stopped != "" {
		fmt.Fprintf(w, "\nstopped: %s\n", r.Stopped)
	}
}

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"join":    func(list []string) string { return strings.Join(list, ", ") },
	"held":    held,
	"open":    func(p probe.Point) string { return assumptions[p.ID].open },
	"assumed": func(p probe.Point) string { return assumptions[p.ID].assumed },
	"word":    func(s string) string { return strings.ReplaceAll(s, " ", "-") },
}).Parse(pageText))

// page writes one HTML page that needs nothing beside itself.
func (r report) page(w io.Writer) error { return pageTemplate.Execute(w, r) }
