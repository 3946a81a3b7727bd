package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// printTable prints rows of cells below a title, if there are any.
func printTable(w io.Writer, title string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	indent := ""
	if title != "" {
		fmt.Fprintf(out, "\n%s\n", title)
		indent = "  "
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, value := range row {
			cells[i] = cell(fmt.Sprint(value))
		}
		fmt.Fprintln(out, indent+strings.Join(cells, "\t"))
	}
	return out.Flush()
}

// cell makes text of others fit for a cell.
func cell(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return target.Line(text)
}
