// Package edit changes Go source for the seeded defects of package faults. An
// edit names a function, or a table, of a package and what the code there
// mentions. It holds no text of the source: code may be moved to another file,
// reformatted, or given other local names.
package edit

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// An Edit changes the code of a function or a table. It finds its place by what
// the code mentions, in the syntax tree, and so survives that code is moved,
// reformatted, or given other local names.
//
// A mention names what is no local variable: "maxRetryAfter" an identifier or
// the last part of a selector, "budget.take" a selector that ends so, ".pos" any
// selector of that name, "gate.pause()" a call, "=waiting" a local variable that
// is defined by an expression which mentions "waiting".
//
// {recv} is the function's receiver, in mentions and texts, {1}, {2}… are its
// parameters, and {it} in the text of an edit is what it replaces.
type Edit struct {
	what  string
	find  func(p *Package, in ast.Node) []ast.Node
	text  string
	every bool // more than one place may be found
}

// Rewrite replaces the expression that is mentioned.
func Rewrite(mention, text string) Edit {
	return Edit{what: "rewrite " + mention, text: text, find: func(_ *Package, in ast.Node) []ast.Node {
		return outermost(in, func(n ast.Node) bool { _, is := n.(ast.Expr); return is && isMention(n, fill(mention, "", in)) })
	}}
}

// IgnoreError makes a call that returns an error alone return none.
func IgnoreError(call string) Edit { return Rewrite(call, "func() error { _ = {it}; return nil }()") }

// Force makes the smallest condition that mentions all of these true or false. It
// is still evaluated.
func Force(value bool, mentions ...string) Edit {
	return Edit{
		what: fmt.Sprint("make ", value, " what mentions ", mentions), text: fmt.Sprintf("func() bool { _ = {it}; return %v }()", value),
		find: func(_ *Package, in ast.Node) []ast.Node { return conditions(in, fillAll(mentions, in)) },
	}
}

// Negate turns the smallest condition that mentions all of these around.
func Negate(mentions ...string) Edit {
	e := Force(false, mentions...)
	e.what, e.text = fmt.Sprint("negate what mentions ", mentions), "!({it})"
	return e
}

// Drop removes the smallest statement that mentions something.
func Drop(mention string) Edit {
	return Edit{what: "drop " + mention, text: "", find: func(_ *Package, in ast.Node) []ast.Node { return statements(in, mention) }}
}

// Before puts code before the smallest statement that mentions something.
func Before(mention, text string) Edit {
	e := Drop(mention)
	e.what, e.text = "before "+mention, text+"\n{it}"
	return e
}

// Returns makes a function do nothing but return.
func Returns(text string) Edit {
	return Edit{what: "return " + text, text: "if true { return " + text + " }\n{it}", find: func(_ *Package, in ast.Node) []ast.Node {
		if f, ok := in.(*ast.FuncDecl); ok && len(f.Body.List) > 0 {
			return []ast.Node{f.Body.List[0]}
		}
		return nil
	}}
}

// Result changes what a function returns, where that is one value.
func Result(text string) Edit {
	return Edit{what: "result " + text, text: text, every: true, find: func(_ *Package, in ast.Node) (found []ast.Node) {
		ast.Inspect(in, func(n ast.Node) bool {
			if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
				found = append(found, r.Results[0])
			}
			_, inner := n.(*ast.FuncLit)
			return !inner
		})
		return found
	}}
}

// Element changes a field of a struct literal of a type, with or without names.
func Element(typeName, field, text string) Edit {
	return Edit{what: "element " + typeName + "." + field, text: text, find: func(p *Package, in ast.Node) (found []ast.Node) {
		ast.Inspect(in, func(n ast.Node) bool {
			if literal, ok := n.(*ast.CompositeLit); ok && literal.Type != nil && isMention(literal.Type, typeName) {
				if at := p.fieldOf(literal, typeName, field); at != nil {
					found = append(found, at)
				}
			}
			return true
		})
		return found
	}}
}

// Everywhere allows an edit to be made in several places of the function.
func Everywhere(e Edit) Edit { e.every = true; return e }

// A Package is the code of a package of the module, without tests.
type Package struct {
	dir   string
	fset  *token.FileSet
	files map[string]*ast.File
	text  map[string][]byte
}

func Parse(dir string) (*Package, error) {
	found, err := build.Default.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	p := &Package{dir: dir, fset: token.NewFileSet(), files: map[string]*ast.File{}, text: map[string][]byte{}}
	for _, base := range found.GoFiles {
		name := filepath.Join(dir, base)
		if p.text[name], err = os.ReadFile(name); err != nil {
			return nil, err
		}
		if p.files[name], err = parser.ParseFile(p.fset, name, p.text[name], parser.ParseComments); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// declaration finds a function ("correlate"), a method ("run.next") or a
// variable of the package.
func (p *Package) declaration(name string) ast.Node {
	for _, file := range p.files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if FunctionName(d) == name {
					return d
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && slices.ContainsFunc(v.Names, func(n *ast.Ident) bool { return n.Name == name }) {
						return v
					}
				}
			}
		}
	}
	return nil
}

// FunctionName is the name of a function, or "type.method". The type is without its
// parameters.
func FunctionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := ast.Unparen(f.Recv.List[0].Type)
	if star, ok := t.(*ast.StarExpr); ok {
		t = ast.Unparen(star.X)
	}
	switch generic := t.(type) {
	case *ast.IndexExpr:
		t = generic.X
	case *ast.IndexListExpr:
		t = generic.X
	}
	return t.(*ast.Ident).Name + "." + f.Name.Name
}

// fieldOf is the value of a field in a literal, which may leave the names out.
func (p *Package) fieldOf(literal *ast.CompositeLit, typeName, field string) ast.Node {
	for i, value := range literal.Elts {
		if pair, named := value.(*ast.KeyValueExpr); named {
			if isMention(pair.Key, field) {
				return pair.Value
			}
		} else if i == p.indexOf(typeName, field) {
			return value
		}
	}
	return nil
}

// indexOf is the place of a field in a struct type of the package, or -1.
func (p *Package) indexOf(typeName, field string) int {
	at, i := -1, 0
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != typeName {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						if name.Name == field {
							at = i
						}
						i++
					}
				}
			}
			return false
		})
	}
	return at
}

// A change is a text in place of a part of a file.
type change struct {
	file     string
	from, to int
	text     string
}

// Apply makes edits in a declaration of the package. It returns the files that
// changed.
func (p *Package) Apply(name string, edits []Edit) (map[string]string, error) {
	in := p.declaration(name)
	if in == nil {
		return nil, fmt.Errorf("%s declares no %s", filepath.Base(p.dir), name)
	}
	var changes []change
	for _, e := range edits {
		found := e.find(p, in)
		if len(found) == 0 || len(found) > 1 && !e.every {
			return nil, fmt.Errorf("%s: %s: found %d times", name, e.what, len(found))
		}
		for _, n := range found {
			from, to := p.fset.Position(n.Pos()), p.fset.Position(n.End())
			it := string(p.text[from.Filename][from.Offset:to.Offset])
			changes = append(changes, change{from.Filename, from.Offset, to.Offset, fill(e.text, it, in)})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(b.from, a.from) })
	changed := map[string]string{}
	for _, c := range changes {
		text, ok := changed[c.file]
		if !ok {
			text = string(p.text[c.file])
		}
		changed[c.file] = text[:c.from] + c.text + text[c.to:]
	}
	return changed, nil
}

func fillAll(texts []string, in ast.Node) []string {
	filled := slices.Clone(texts)
	for i := range filled {
		filled[i] = fill(filled[i], "", in)
	}
	return filled
}

// fill puts what an edit's text stands for in its place.
func fill(text, it string, in ast.Node) string {
	f, ok := in.(*ast.FuncDecl)
	if !ok {
		return strings.ReplaceAll(text, "{it}", it)
	}
	pairs := []string{"{it}", it}
	if f.Recv != nil && len(f.Recv.List[0].Names) > 0 {
		pairs = append(pairs, "{recv}", f.Recv.List[0].Names[0].Name)
	}
	i := 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			i++
			pairs = append(pairs, "{"+strconv.Itoa(i)+"}", name.Name)
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
