package surface_test

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPackagesHaveTheSameOptions: refunds/option.go and updater/option.go begin as
// bins/option.go, word for word. The options of one endpoint alone come after that.
func TestPackagesHaveTheSameOptions(t *testing.T) {
	afterPackage := func(file string) string {
		_, text, _ := strings.Cut(read(t, file), "\n")
		return text
	}
	for _, file := range []string{"refunds/option.go", "updater/option.go"} {
		if !strings.HasPrefix(afterPackage(file), afterPackage("bins/option.go")) {
			t.Errorf("%s does not begin as bins/option.go", file)
		}
	}
}

// TestPackagesHaveTheSameErrors: but for the error of an item, which lookups alone have.
func TestPackagesHaveTheSameErrors(t *testing.T) {
	shared := func(file string) []string {
		return slices.DeleteFunc(declarations(t, file), func(d string) bool { return strings.Contains(d, "ItemError") })
	}
	for _, file := range []string{"refunds/error.go", "updater/error.go"} {
		sameText(t, file, shared(file), shared("bins/error.go"))
	}
}

// TestFakesHaveTheSameFaults: but for the range of a content, which downloads alone have.
func TestFakesHaveTheSameFaults(t *testing.T) {
	ownField := regexp.MustCompile(`\n\t// Range is (.*\n)*?\tRange\s+string`)
	want := declarations(t, "updater/updatertest/fault.go")
	for i := range want {
		want[i] = ownField.ReplaceAllString(want[i], "")
	}
	for _, file := range []string{"bins/binstest/fault.go", "refunds/refundstest/fault.go"} {
		sameText(t, file, declarations(t, file), want)
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

// declarations returns what a user reads of a file: the exported declarations with their
// comments, without the bodies of functions.
func declarations(t *testing.T, file string) (list []string) {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, filepath.Join(root, file), nil, parser.ParseComments)
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
		list = append(list, text.String())
	}
	return list
}
