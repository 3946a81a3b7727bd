package main

import (
	"bytes"
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

	"github.com/carddata/carddata-go/internal/faults/edit"
)

// A mutant is one change of the code.
type mutant struct {
	id   int
	name string // file, function, kind, and which of them
	line int
	was  string
}

// A source is a package that holds all its mutants at once. Which of them is in
// force is said when the tests run, so that it is built once.
type source struct {
	dir     string
	overlay map[string]string // text in place of that of a file
	mutants []mutant
}

// swaps are what becomes of an operator.
var swaps = map[token.Token][]struct {
	kind string
	to   token.Token
}{
	token.LSS:  {{"boundary", token.LEQ}, {"negation", token.GEQ}},
	token.LEQ:  {{"boundary", token.LSS}, {"negation", token.GTR}},
	token.GTR:  {{"boundary", token.GEQ}, {"negation", token.LEQ}},
	token.GEQ:  {{"boundary", token.GTR}, {"negation", token.LSS}},
	token.EQL:  {{"negation", token.NEQ}},
	token.NEQ:  {{"negation", token.EQL}},
	token.LAND: {{"logic", token.LOR}},
	token.LOR:  {{"logic", token.LAND}},
	token.ADD:  {{"arithmetic", token.SUB}},
	token.SUB:  {{"arithmetic", token.ADD}},
	token.MUL:  {{"arithmetic", token.QUO}},
	token.QUO:  {{"arithmetic", token.MUL}},
	token.REM:  {{"arithmetic", token.MUL}},
}

// mutate makes the mutants of those files of a package that keep names.
func mutate(root, dir string, keep func(file string) bool) (*source, error) {
	list, err := goList(root, "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles", "./"+dir)
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
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	if _, err := config.Check(own.ImportPath, fset, files, info); err != nil {
		return nil, err
	}
	s := &source{dir: dir, overlay: map[string]string{}}
	for _, file := range files {
		name := fset.Position(file.Pos()).Filename
		if !keep(filepath.Base(name)) {
			continue
		}
		w := &writer{source: s, info: info, fset: fset, file: filepath.ToSlash(filepath.Join(dir, filepath.Base(name))), text: texts[name], counts: map[string]int{}}
		var b strings.Builder
		last := 0
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			w.function = edit.FunctionName(f)
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

type writer struct {
	*source
	info           *types.Info
	fset           *token.FileSet
	file, function string
	text           []byte
	counts         map[string]int
}

// add makes a mutant of what stands at a place.
func (w *writer) add(kind string, at ast.Node) int {
	key := fmt.Sprintf("%s %s %s", w.file, w.function, kind)
	w.counts[key]++
	m := mutant{id: len(w.mutants) + 1, name: fmt.Sprintf("%s %d", key, w.counts[key]), line: w.fset.Position(at.Pos()).Line, was: w.original(at)}
	w.mutants = append(w.mutants, m)
	return m.id
}

func (w *writer) original(n ast.Node) string {
	return string(w.text[w.fset.Position(n.Pos()).Offset:w.fset.Position(n.End()).Offset])
}

// rewrite returns the text of a node with the mutants in it.
func (w *writer) rewrite(n ast.Node) string {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if text, ok := w.binary(n); ok {
			return text
		}
	case *ast.IncDecStmt:
		op := map[token.Token]string{token.INC: "+", token.DEC: "-"}[n.Tok]
		x := w.rewrite(n.X)
		return fmt.Sprintf("%s = mutantStep(%d, %s, %q)", x, w.add("step", n), x, op)
	case *ast.UnaryExpr:
		if n.Op == token.SUB && w.isNumber(n) {
			return fmt.Sprintf("mutantNegative(%d, %s)", w.add("sign", n), w.rewrite(n.X))
		}
	}
	return w.children(n)
}

func (w *writer) binary(n *ast.BinaryExpr) (string, bool) {
	of := w.info.Types[n]
	if of.Value != nil || len(swaps[n.Op]) == 0 {
		return "", false
	}
	if swaps[n.Op][0].kind == "arithmetic" {
		if !w.isNumber(n) {
			return "", false
		}
		id := w.add("arithmetic", n)
		if n.Op == token.REM {
			return fmt.Sprintf("mutantRemainder(%d, %s, %s)", id, w.rewrite(n.X), w.rewrite(n.Y)), true
		}
		return fmt.Sprintf("mutantArithmetic(%d, %q, %s, %s)", id, n.Op, w.rewrite(n.X), w.rewrite(n.Y)), true
	}
	if b, ok := of.Type.Underlying().(*types.Basic); !ok || b.Info()&types.IsBoolean == 0 {
		return "", false
	}
	var b strings.Builder
	b.WriteString("func() bool { ")
	for _, swap := range swaps[n.Op] {
		fmt.Fprintf(&b, "if isMutant(%d) { return %s %s %s }; ", w.add(swap.kind, n), w.original(n.X), swap.to, w.original(n.Y))
	}
	fmt.Fprintf(&b, "return %s %s %s }()", w.rewrite(n.X), n.Op, w.rewrite(n.Y))
	return b.String(), true
}

// isNumber tells whether an expression is a number that is not known before it runs.
func (w *writer) isNumber(e ast.Expr) bool {
	of := w.info.Types[e]
	if of.Value != nil || of.Type == nil {
		return false
	}
	if _, generic := of.Type.(*types.TypeParam); generic {
		return false
	}
	b, ok := of.Type.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsInteger|types.IsFloat) != 0
}

// children returns the text of a node, in which its parts are rewritten.
func (w *writer) children(n ast.Node) string {
	from := w.fset.Position(n.Pos()).Offset
	var b strings.Builder
	last := from
	ast.Inspect(n, func(part ast.Node) bool {
		if part == nil || part == n {
			return true
		}
		switch part.(type) {
		case *ast.BinaryExpr, *ast.IncDecStmt, *ast.UnaryExpr:
		default:
			return true
		}
		at := w.fset.Position(part.Pos()).Offset
		b.Write(w.text[last:at])
		b.WriteString(w.rewrite(part))
		last = w.fset.Position(part.End()).Offset
		return false
	})
	b.Write(w.text[last:w.fset.Position(n.End()).Offset])
	return b.String()
}

// helpers are added to the package. The mutant in force is in the environment, and
// a file is made when it is reached.
const helpers = `package p

import (
	"os"
	"strconv"
	"sync"
)

var (
	mutantInForce, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutantReached    = sync.OnceFunc(func() { os.WriteFile(os.Getenv("MUTANT_REACHED"), nil, 0o600) })
)

func isMutant(id int) bool {
	if id != mutantInForce {
		return false
	}
	mutantReached()
	return true
}

type mutantInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

type mutantNumber interface {
	mutantInteger | ~float32 | ~float64
}

func mutantArithmetic[T mutantNumber](id int, op string, a, b T) T {
	if isMutant(id) {
		op = map[string]string{"+": "-", "-": "+", "*": "/", "/": "*"}[op]
	}
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	}
	return a / b
}

func mutantRemainder[T mutantInteger](id int, a, b T) T {
	if isMutant(id) {
		return a * b
	}
	return a % b
}

func mutantStep[T mutantNumber](id int, x T, op string) T {
	if (op == "+") != isMutant(id) {
		return x + 1
	}
	return x - 1
}

func mutantNegative[T mutantNumber](id int, x T) T {
	if isMutant(id) {
		return x
	}
	return -x
}
`

type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
}

func goList(root string, args ...string) (all []listed, err error) {
	cmd := exec.Command("go", slices.Concat([]string{"list"}, args)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
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
