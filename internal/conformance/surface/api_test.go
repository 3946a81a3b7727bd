package surface_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the tests compare with")

// TestAPI compares what the packages export with testdata/api. A difference is a
// change that users see: if it is meant, take it over with
//
//	go -C internal/conformance test ./surface -run TestAPI -update
func TestAPI(t *testing.T) {
	for _, pkg := range []string{"bins", "bins/binstest", "refunds", "refunds/refundstest", "updater", "updater/updatertest"} {
		got := listing(t, filepath.Join("..", "..", "..", pkg))
		path := filepath.Join("testdata", "api", strings.ReplaceAll(pkg, "/", "_")+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got == string(want) {
			continue
		}
		before, after := strings.Split(string(want), "\n"), strings.Split(got, "\n")
		for _, line := range before {
			if !slices.Contains(after, line) {
				t.Errorf("%s: gone:  %s", pkg, line)
			}
		}
		for _, line := range after {
			if !slices.Contains(before, line) {
				t.Errorf("%s: added: %s", pkg, line)
			}
		}
		t.Errorf("%s exports something else than %s says", pkg, path)
	}
}

// listing returns the exported declarations of a package, sorted, without
// comments, bodies and values.
func listing(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	var found []string
	add := func(node any) {
		var source bytes.Buffer
		if err := printer.Fprint(&source, files, node); err != nil {
			t.Fatal(err)
		}
		found = append(found, source.String())
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(parsed)
		for _, declaration := range parsed.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Body = nil; d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type)) {
					add(d)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if value, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
						value.Values = nil
					}
					if d.Tok != token.IMPORT {
						add(&ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}})
					}
				}
			}
		}
	}
	slices.Sort(found)
	return strings.Join(found, "\n") + "\n"
}
