// Package table prints what the commands tell.
package table

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// Print prints rows of cells below a title, if there are any.
func Print(w io.Writer, title string, rows [][]any) error {
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
		separator := indent
		for _, value := range row {
			if n, ok := value.(int); ok {
				value = Number(n)
			}
			fmt.Fprint(out, separator, Cell(fmt.Sprint(value)))
			separator = "\t"
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// Cell makes text of others fit for a cell.
func Cell(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return target.Line(text)
}

// Number writes 1234567 as 1,234,567.
func Number(n int) string { return humanize.Comma(int64(n)) }
