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
		has(t, file, declarations(t, file), declarations(t, "bins/option.go"))
	}
}

// TestPackagesHaveTheSameErrors: but for the error of an item, which lookups alone have, and for the
// outcome, which refunds alone have.
func TestPackagesHaveTheSameErrors(t *testing.T) {
	want := slices.DeleteFunc(declarations(t, "bins/error.go"), func(d string) bool { return strings.Contains(d, "ItemError") })
	for _, file := range []string{"refunds/error.go", "updater/error.go"} {
		got := declarations(t, file)
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

// TestFakesHaveTheSameMethods: what a test scripts and sees has the same names in all three fakes. Fault and Request are
// one type.
func TestFakesHaveTheSameMethods(t *testing.T) {
	methods := func(file string) []string {
		return slices.DeleteFunc(declarations(t, file), func(d string) bool { return !strings.HasPrefix(d, "func ") })
	}
	want := methods("refunds/refundstest/fault.go")
	for _, file := range []string{"bins/binstest/fault.go", "updater/updatertest/fault.go"} {
		if got := methods(file); !slices.Equal(got, want) {
			t.Errorf("%s has\n%s\nand refundstest\n%s", file, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// declarations returns the exported declarations of a file, without the bodies of functions and
// without comments.
func declarations(t *testing.T, file string) (list []string) {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, filepath.Join(root, file), nil, 0)
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
		list = append(list, strings.Join(strings.Fields(text.String()), " "))
	}
	return list
}
