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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A fuzzPackage has targets.
type fuzzPackage struct {
	path, dir string
	targets   []string
}

// runFuzzTargets runs each target a number of times. A time would not do: at its
// end Go 1.26 can fail a target that found nothing (go.dev/issue/75804).
func runFuzzTargets(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	runs := flags.Int("n", 3000, "runs of each target")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return errUsage
	}
	packages, err := fuzzPackages(ctx)
	if err != nil {
		return err
	}
	for _, pkg := range packages {
		if err := pkg.run(ctx, out, *runs); err != nil {
			return err
		}
	}
	return nil
}

// run builds the package once for all its targets.
func (p fuzzPackage) run(ctx context.Context, out io.Writer, runs int) error {
	tmp, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	program := filepath.Join(tmp, "fuzz.test")
	if err := pass(ctx, out, "go", "test", "-c", "-vet=off", "-fuzz", ".", "-o", program, p.path); err != nil {
		return err
	}
	for _, name := range p.targets {
		fmt.Fprintln(out, p.path, name)
		// What is new is shortened by default for up to a minute, which tells nothing here.
		cmd := exec.CommandContext(ctx, program, "-test.run=^$", "-test.fuzz=^"+name+"$", fmt.Sprintf("-test.fuzztime=%dx", runs),
			"-test.fuzzminimizetime=20x", "-test.fuzzcachedir="+tmp)
		cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, out, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s %s: %w", p.path, name, err)
		}
	}
	return nil
}

// fuzzPackages finds the targets of the module in this directory.
func fuzzPackages(ctx context.Context) ([]fuzzPackage, error) {
	listing, err := output(ctx, "go", "list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	var found []fuzzPackage
	for d := json.NewDecoder(strings.NewReader(string(listing))); ; {
		var listed struct {
			Dir, ImportPath           string
			TestGoFiles, XTestGoFiles []string
		}
		switch err := d.Decode(&listed); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		}
		pkg := fuzzPackage{path: listed.ImportPath, dir: listed.Dir}
		for _, file := range append(listed.TestGoFiles, listed.XTestGoFiles...) {
			names, err := fuzzFunctions(filepath.Join(pkg.dir, file), nil)
			if err != nil {
				return nil, err
			}
			pkg.targets = append(pkg.targets, names...)
		}
		if len(pkg.targets) > 0 {
			found = append(found, pkg)
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
