package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// A writer writes a file with mutants in it. What a node is part of is noted before
// it is rewritten.
type writer struct {
	*source
	pkg                 *types.Package
	info                *types.Info
	fset                *token.FileSet
	dir, file, function string
	text                []byte
	counts              map[string]int // of mutants with one name

	listed     map[ast.Stmt]bool   // statements that may be left out
	conditions map[ast.Expr]bool   // what something is decided by
	returned   map[ast.Expr]string // results, with their types
	left       map[ast.Node]bool   // no mutants in here
}

// prepare notes what the nodes of a function's body are part of.
func (w *writer) prepare(body *ast.BlockStmt, results *ast.FieldList) {
	list := func(statements []ast.Stmt) {
		for _, s := range statements {
			w.listed[s] = true
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			w.prepare(n.Body, n.Type.Results)
			return false
		case *ast.BlockStmt:
			list(n.List)
		case *ast.CaseClause:
			list(n.Body)
		case *ast.CommClause:
			list(n.Body)
		case *ast.IfStmt:
			w.conditions[n.Cond] = true
		case *ast.ForStmt:
			w.conditions[n.Cond] = true
		case *ast.SwitchStmt:
			if n.Tag == nil {
				for _, clause := range n.Body.List {
					for _, e := range clause.(*ast.CaseClause).List {
						w.conditions[e] = true
					}
				}
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				w.conditions[n.X], w.conditions[n.Y] = true, true
			}
		case *ast.ReturnStmt:
			var types []string
			if results != nil {
				for _, field := range results.List {
					for range max(1, len(field.Names)) {
						types = append(types, w.original(field.Type))
					}
				}
			}
			for i, e := range n.Results {
				if len(n.Results) == len(types) {
					w.returned[e] = types[i]
				}
			}
		case *ast.CallExpr:
			// How much room is made in advance, nobody notices.
			if name := w.original(n.Fun); name == "make" && len(n.Args) == 3 {
				w.left[n.Args[2]] = true
			} else if strings.HasSuffix(name, ".Grow") {
				w.left[n] = true
			}
		case *ast.ArrayType:
			w.left[n] = true
		case *ast.DeclStmt:
			w.left[n] = n.Decl.(*ast.GenDecl).Tok == token.CONST
		}
		return true
	})
}

// add makes a mutant of what stands at a place.
func (w *writer) add(kind string, at ast.Node) int {
	was := strings.Join(strings.Fields(w.original(at)), " ")
	name := fmt.Sprintf("%s %s %s: %s", w.dir, w.function, kind, was[:min(len(was), 80)])
	w.counts[name]++
	if n := w.counts[name]; n > 1 {
		name += fmt.Sprintf(" #%d", n)
	}
	m := mutant{id: len(w.mutants) + 1, name: name, file: w.file, line: w.fset.Position(at.Pos()).Line}
	w.mutants = append(w.mutants, m)
	return m.id
}

func (w *writer) original(n ast.Node) string {
	return string(w.text[w.fset.Position(n.Pos()).Offset:w.fset.Position(n.End()).Offset])
}

// rewrite returns the text of a node with the mutants in it.
func (w *writer) rewrite(n ast.Node) string {
	if w.left[n] {
		return w.original(n)
	}
	if s, ok := n.(ast.Stmt); ok && w.listed[s] && w.mayRemove(s) {
		return fmt.Sprintf("if !isMutant(%d) { %s }", w.add("removal", n), w.inside(n))
	}
	e, ok := n.(ast.Expr)
	if !ok {
		return w.inside(n)
	}
	if typ := w.returned[e]; typ == "bool" && w.isPlain(e) {
		return fmt.Sprintf("mutantNot[bool](%d, %s)", w.add("not", e), w.inside(e))
	} else if typ != "" && typ != "bool" && !w.isZero(e) {
		if _, calculated := e.(*ast.BinaryExpr); !calculated {
			return fmt.Sprintf("mutantZero[%s](%d, %s)", typ, w.add("zero", e), w.inside(e))
		}
	} else if w.conditions[e] && w.isPlain(e) && w.info.Types[e].Value == nil {
		return fmt.Sprintf("mutantNot(%d, %s)", w.add("not", e), w.inside(e))
	}
	return w.inside(e)
}

// mayRemove tells whether anybody could notice that a statement is missing.
func (w *writer) mayRemove(s ast.Stmt) bool {
	var call *ast.CallExpr
	switch s := s.(type) {
	case *ast.AssignStmt:
		_, inside := s.Lhs[0].(*ast.IndexExpr)
		name, _ := s.Lhs[0].(*ast.Ident)
		return s.Tok != token.DEFINE && (name == nil || name.Name != "_") && !(inside && w.original(s.Rhs[0]) == "nil")
	case *ast.ExprStmt:
		call, _ = s.X.(*ast.CallExpr)
	case *ast.DeferStmt:
		call = s.Call
	}
	if call == nil {
		return false
	}
	name := w.original(call.Fun)
	if called, ok := call.Fun.(*ast.SelectorExpr); ok {
		switch called.Sel.Name {
		case "Lock", "Unlock", "RLock", "RUnlock", "Grow":
			return false
		case "Stop": // of a timer
			return w.info.TypeOf(called.X).String() != "*time.Timer"
		}
	}
	return name != "panic"
}

// isPlain tells of a condition that none of its parts is changed to the contrary.
func (w *writer) isPlain(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return false
	case *ast.ParenExpr:
		return w.isPlain(e.X)
	}
	return true
}

// isZero tells of a result that there would be no change.
func (w *writer) isZero(e ast.Expr) bool {
	if literal, ok := e.(*ast.CompositeLit); ok {
		return len(literal.Elts) == 0
	}
	switch v := w.info.Types[e].Value; {
	case v == nil:
		return w.info.Types[e].IsNil()
	case v.Kind() == constant.String:
		return constant.StringVal(v) == ""
	}
	return true // of a number, the next one is tried
}

// inside returns the text of a node with its own operator and its parts changed.
func (w *writer) inside(n ast.Node) string {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if text, ok := w.binary(n); ok {
			return text
		}
	case *ast.IncDecStmt:
		x := w.rewrite(n.X)
		return fmt.Sprintf("%s = mutantStep(%d, %s, %q)", x, w.add("step", n), x, n.Tok.String()[:1])
	case *ast.UnaryExpr:
		if n.Op == token.SUB && w.isNumber(n) {
			return fmt.Sprintf("mutantNegative(%d, %s)", w.add("arithmetic", n), w.rewrite(n.X))
		}
	}
	if e, ok := n.(ast.Expr); ok && w.info.Types[e].Value != nil {
		if text, ok := w.constant(e); ok {
			return text
		}
		return w.original(e)
	}
	return w.children(n)
}

// constant makes a status or a value of an enumeration the next one.
func (w *writer) constant(e ast.Expr) (string, bool) {
	of, text := w.info.Types[e], w.original(e)
	b, ok := of.Type.Underlying().(*types.Basic)
	if !ok || b.Info()&types.IsInteger == 0 || b.Info()&types.IsUntyped != 0 {
		return "", false
	}
	named, _ := of.Type.(*types.Named)
	own := named != nil && strings.HasPrefix(named.Obj().Pkg().Path(), "github.com/carddata/")
	switch e.(type) {
	case *ast.Ident, *ast.SelectorExpr:
	default:
		return "", false
	}
	switch {
	case strings.HasPrefix(text, "http.Status"):
		text = fmt.Sprintf("%s(%s)", of.Type, text)
	case own:
	default:
		return "", false
	}
	return fmt.Sprintf("mutantConstant(%d, %s)", w.add("constant", e), text), true
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
		fmt.Fprintf(&b, "if isMutant(%d) { return (%s) %s (%s) }; ", w.add(swap.kind, n), w.original(n.X), swap.to, w.original(n.Y))
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
		switch part := part.(type) {
		case ast.Expr, ast.Stmt:
			if pair, ok := part.(*ast.KeyValueExpr); ok { // the key is a field, or a constant
				w.left[pair.Key] = true
			}
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
