package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"strings"
)

// A fuzzTarget is a function of a package.
type fuzzTarget struct{ pkg, name string }

// runFuzzTargets runs each target a number of times. A time would not do: at its
// end Go 1.26 can fail a target that found nothing (go.dev/issue/75804).
func runFuzzTargets(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	runs := flags.Int("n", 3000, "runs of each target")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return errUsage
	}
	targets, err := fuzzTargets(ctx)
	if err != nil {
		return err
	}
	for _, t := range targets {
		fmt.Fprintln(out, t.pkg, t.name)
		if err := pass(ctx, out, "go", "test", "-vet=off", "-run", "^$", "-fuzz", "^"+t.name+"$", fmt.Sprintf("-fuzztime=%dx", *runs), t.pkg); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d fuzz targets\n", len(targets))
	return nil
}

// fuzzTargets finds the targets of the module in this directory.
func fuzzTargets(ctx context.Context) ([]fuzzTarget, error) {
	listing, err := output(ctx, "go", "list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	var targets []fuzzTarget
	for d := json.NewDecoder(strings.NewReader(string(listing))); ; {
		var pkg struct {
			Dir, ImportPath           string
			TestGoFiles, XTestGoFiles []string
		}
		switch err := d.Decode(&pkg); {
		case errors.Is(err, io.EOF):
			return targets, nil
		case err != nil:
			return nil, err
		}
		for _, file := range append(pkg.TestGoFiles, pkg.XTestGoFiles...) {
			names, err := fuzzFunctions(filepath.Join(pkg.Dir, file), nil)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				targets = append(targets, fuzzTarget{pkg.ImportPath, name})
			}
		}
	}
}

// fuzzFunctions returns the names of the targets in a file, or in code if that is
// not nil.
func fuzzFunctions(path string, code any) (names []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, code, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") || f.Type.Params.NumFields() != 1 {
			continue
		}
		if star, ok := f.Type.Params.List[0].Type.(*ast.StarExpr); ok {
			if of, ok := star.X.(*ast.SelectorExpr); ok && of.Sel.Name == "F" {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names, nil
}
