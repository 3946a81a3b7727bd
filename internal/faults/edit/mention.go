package edit

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// isMention tells whether a node itself is what is mentioned.
func isMention(n ast.Node, mention string) bool {
	if rest, called := strings.CutSuffix(mention, "()"); called {
		call, ok := n.(*ast.CallExpr)
		return ok && isMention(call.Fun, rest)
	}
	if from, local := strings.CutPrefix(mention, "="); local {
		id, ok := n.(*ast.Ident)
		if !ok || id.Obj == nil {
			return false
		}
		defined, ok := id.Obj.Decl.(*ast.AssignStmt)
		return ok && slices.ContainsFunc(defined.Rhs, func(e ast.Expr) bool { return mentions(e, from) })
	}
	switch n := n.(type) {
	case *ast.Ident:
		return n.Name == mention
	case *ast.BasicLit:
		return n.Value == mention
	case *ast.SelectorExpr:
		path := "." + dotted(n)
		return strings.HasSuffix(path, "."+strings.TrimPrefix(mention, "."))
	case *ast.StarExpr:
		return isMention(n.X, mention)
	case *ast.UnaryExpr:
		return n.Op == token.AND && isMention(n.X, mention)
	}
	return false
}

// dotted is a selector as it is written, with what is no name left out.
func dotted(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return dotted(e.X) + "." + e.Sel.Name
	}
	return ""
}

// mentions tells whether a part of a node is what is mentioned.
func mentions(n ast.Node, mention string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if n != nil && !found {
			found = isMention(n, mention)
		}
		return !found
	})
	return found
}

// outermost are the nodes for which is holds, but not those within them.
func outermost(in ast.Node, is func(ast.Node) bool) (found []ast.Node) {
	ast.Inspect(in, func(n ast.Node) bool {
		if n == nil || !is(n) {
			return true
		}
		found = append(found, n)
		return false
	})
	return found
}

// statements are the smallest statements that mention something.
func statements(in ast.Node, mention string) (found []ast.Node) {
	ast.Inspect(in, func(n ast.Node) bool {
		for _, s := range listOf(n) {
			if mentions(s, mention) && !slices.ContainsFunc(within(s), func(inner ast.Stmt) bool { return mentions(inner, mention) }) {
				found = append(found, s)
			}
		}
		return true
	})
	return found
}

// listOf are the statements that stand directly in a node.
func listOf(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return slices.DeleteFunc(slices.Clone(n.List), isClause)
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

func isClause(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

// within are the statements at any depth of a statement.
func within(s ast.Stmt) (inner []ast.Stmt) {
	ast.Inspect(s, func(n ast.Node) bool {
		if n != nil {
			inner = append(inner, listOf(n)...)
		}
		return true
	})
	return inner
}

// conditions are the smallest conditions that mention all of these: what
// decides an if, a for or a case, what a function returns, and their operands.
func conditions(in ast.Node, all []string) []ast.Node {
	var found []ast.Node
	var look func(e ast.Expr) bool
	look = func(e ast.Expr) bool { // tells whether e or a part of it mentions them
		if e == nil || slices.ContainsFunc(all, func(m string) bool { return !mentions(e, m) }) {
			return false
		}
		smaller := false
		switch e := e.(type) {
		case *ast.ParenExpr:
			return look(e.X)
		case *ast.UnaryExpr:
			smaller = e.Op == token.NOT && look(e.X)
		case *ast.BinaryExpr:
			if e.Op == token.LAND || e.Op == token.LOR {
				left, right := look(e.X), look(e.Y)
				smaller = left || right
			}
		}
		if !smaller {
			found = append(found, e)
		}
		return true
	}
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			look(n.Cond)
		case *ast.ForStmt:
			look(n.Cond)
		case *ast.SwitchStmt:
			if n.Tag == nil {
				for _, clause := range n.Body.List {
					for _, e := range clause.(*ast.CaseClause).List {
						look(e)
					}
				}
			}
		case *ast.ReturnStmt:
			for _, e := range n.Results {
				if isBoolean(e) {
					look(e)
				}
			}
		}
		return true
	})
	return found
}

// isBoolean tells whether an expression is one by its form.
func isBoolean(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return isBoolean(e.X)
	case *ast.UnaryExpr:
		return e.Op == token.NOT
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			return true
		}
	}
	return false
}
