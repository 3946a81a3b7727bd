package surface_test

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPackagesHaveTheSameOptions: refunds and updater have all options of bins, and those of their
// endpoints besides.
func TestPackagesHaveTheSameOptions(t *testing.T) {
	for _, file := range []string{"refunds/option.go", "updater/option.go"} {
		has(t, file, declarations(t, file, 0), declarations(t, "bins/option.go", 0))
	}
}

// TestPackagesHaveTheSameErrors: but for the error of an item, which lookups alone have, and for the
// outcome, which refunds alone have.
func TestPackagesHaveTheSameErrors(t *testing.T) {
	want := slices.DeleteFunc(declarations(t, "bins/error.go", 0), func(d string) bool { return strings.Contains(d, "ItemError") })
	for _, file := range []string{"refunds/error.go", "updater/error.go"} {
		got := declarations(t, file, 0)
		for i := range got {
			got[i] = strings.Replace(got[i], "Outcome Outcome Evidence Evidence ", "", 1)
		}
		has(t, file, got, want)
	}
}

func has(t *testing.T, file string, got, want []string) {
	t.Helper()
	for _, d := range want {
		if !slices.Contains(got, d) {
			t.Errorf("%s lacks\n%s", file, d)
		}
	}
}

func TestFakesHaveTheSameFaults(t *testing.T) {
	want := declarations(t, "updater/updatertest/fault.go", parser.ParseComments)
	for _, file := range []string{"bins/binstest/fault.go", "refunds/refundstest/fault.go"} {
		sameText(t, file, declarations(t, file, parser.ParseComments), want)
	}
}

func sameText(t *testing.T, file string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("%s differs: it has\n%s\nand the other has\n%s", file, strings.Join(got[min(i, len(got)):], "\n"), strings.Join(want[min(i, len(want)):], "\n"))
			return
		}
	}
}

// declarations returns what a user reads of a file: the exported declarations, without the bodies
// of functions, and with their comments if the mode says so.
func declarations(t *testing.T, file string, mode parser.Mode) (list []string) {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, filepath.Join(root, file), nil, mode)
	if err != nil {
		t.Fatal(err)
	}
	ast.FileExports(parsed)
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
		var text strings.Builder
		if err := printer.Fprint(&text, files, d); err != nil {
			t.Fatal(err)
		}
		if mode == 0 {
			list = append(list, strings.Join(strings.Fields(text.String()), " "))
		} else {
			list = append(list, text.String())
		}
	}
	return list
}
