package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/carddata/carddata-go/internal/faults/edit"
)

// A mutant is one change of the code.
type mutant struct {
	id   int
	name string // package, function, kind, and the code that is changed: moving it changes nothing
	file string
	line int
}

// A source is a package that holds all its mutants at once. Which of them is in
// force is said when the tests run, so that it is built once.
type source struct {
	target  target
	overlay map[string]string // text in place of that of a file
	mutants []mutant
}

// mutate makes the mutants of those files of a package that keep names.
func mutate(ctx context.Context, root, dir string, keep func(file string) bool) (*source, error) {
	list, err := goList(ctx, root, "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles", "./"+dir)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range list {
		exports[p.ImportPath] = p.Export
	}
	own := list[len(list)-1] // after all that it needs
	fset := token.NewFileSet()
	var files []*ast.File
	texts := map[string][]byte{}
	for _, base := range own.GoFiles {
		name := filepath.Join(own.Dir, base)
		if texts[name], err = os.ReadFile(name); err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, name, texts[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	pkg, err := config.Check(own.ImportPath, fset, files, info)
	if err != nil {
		return nil, err
	}
	s := &source{overlay: map[string]string{}}
	counts := map[string]int{}
	for _, file := range files {
		name := fset.Position(file.Pos()).Filename
		if !keep(filepath.Base(name)) {
			continue
		}
		w := &writer{
			source: s, pkg: pkg, info: info, fset: fset, dir: dir, file: filepath.ToSlash(filepath.Join(dir, filepath.Base(name))), text: texts[name], counts: counts,
			listed: map[ast.Stmt]bool{}, conditions: map[ast.Expr]bool{}, returned: map[ast.Expr]string{}, left: map[ast.Node]bool{},
		}
		var b strings.Builder
		last := 0
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			w.function = edit.FunctionName(f)
			w.prepare(f.Body, f.Type.Results)
			from, to := fset.Position(f.Body.Pos()).Offset, fset.Position(f.Body.End()).Offset
			b.Write(w.text[last:from])
			b.WriteString(w.rewrite(f.Body))
			last = to
		}
		b.Write(w.text[last:])
		s.overlay[name] = b.String()
	}
	s.overlay[filepath.Join(own.Dir, "zz_mutants.go")] = strings.Replace(helpers, "package p", "package "+files[0].Name.Name, 1)
	return s, nil
}

type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
}

func goList(ctx context.Context, root string, args ...string) (all []listed, err error) {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"list"}, args)...)
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = root, os.Stderr, time.Second
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var p listed
		if err := decoder.Decode(&p); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}
