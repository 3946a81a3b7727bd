package surface_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var packages = []string{"bins", "refunds", "updater"}

// sharedFiles declare the same in every package. A file that becomes common to
// the three belongs here.
var sharedFiles = []string{"option.go", "error.go"}

// own are the declarations that one package has beyond the others, because only
// its endpoint has a use for them.
var own = map[string][]string{
	"bins": {
		"ItemError", "ItemError.BIN", "ItemError.Error", "ItemError.Format", "ItemError.MarshalText", "ItemError.Message", "ItemError.Unwrap",
	},
	"refunds": {"WithResubmit", "WithReceiptCheck", "WithBeforeSend"},
	"updater": {"WithNotReady", "WithWait", "WithErrorContent", "WithEncodedContent", "WithRedirectHosts", "WithResumeTimeout"},
}

// An api is what a user reads of a file: by name, each exported declaration
// with its comments, without bodies and values.
type api map[string]string

func exported(t *testing.T, pkg, file string) api {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, filepath.Join(root, pkg, file), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found := make(api)
	add := func(name string, doc *ast.CommentGroup, comment *ast.CommentGroup, node any) {
		if doc.Text() == "" {
			t.Errorf("%s.%s has no doc comment", pkg, name)
		}
		var source bytes.Buffer
		err := printer.Fprint(&source, files, &printer.CommentedNode{Node: node, Comments: parsed.Comments})
		if err != nil {
			t.Fatal(err)
		}
		found[name] = doc.Text() + comment.Text() + source.String()
	}
	for _, declaration := range parsed.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			if d.Name.IsExported() {
				// The bodies differ by the package's name.
				add(name, d.Doc, nil, &ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type})
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						add(s.Name.Name, either(s.Doc, d.Doc), s.Comment, s)
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.IsExported() {
							found[name.Name+" (group)"] = d.Doc.Text()
							add(name.Name, either(s.Doc, d.Doc), s.Comment, s)
						}
					}
				}
			}
		}
	}
	return found
}

func receiver(of ast.Expr) string {
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return of.(*ast.Ident).Name
}

func either(a, b *ast.CommentGroup) *ast.CommentGroup {
	if a != nil {
		return a
	}
	return b
}

// ownFault is what one fake alone has: the ranges of a download.
var ownFault = regexp.MustCompile(`\n\t// Range is (.*\n)*?\tRange\s+string`)

// The fakes are scripted alike, but for that.
func TestFakesShareTheirSurface(t *testing.T) {
	fakes := []string{"bins/binstest", "refunds/refundstest", "updater/updatertest"}
	want := exported(t, fakes[0], "fault.go")
	for _, fake := range fakes[1:] {
		got := exported(t, fake, "fault.go")
		got["Fault"] = ownFault.ReplaceAllString(got["Fault"], "")
		if !maps.Equal(got, want) {
			t.Errorf("%s/fault.go and %s/fault.go differ", fakes[0], fake)
		}
	}
}

func TestPackagesShareTheirSurface(t *testing.T) {
	for _, file := range sharedFiles {
		apis := make(map[string]api)
		for _, pkg := range packages {
			apis[pkg] = exported(t, pkg, file)
			for _, name := range own[pkg] {
				delete(apis[pkg], name)
				delete(apis[pkg], name+" (group)")
			}
		}
		want := apis[packages[0]]
		if len(want) == 0 {
			t.Fatalf("%s declares nothing", file)
		}
		for _, pkg := range packages[1:] {
			got := apis[pkg]
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if _, ok := got[name]; !ok {
					t.Errorf("%s has no %s", pkg, name)
				} else if got[name] != want[name] {
					t.Errorf("%s.%s and %s.%s differ:\n%s\n\n%s", packages[0], name, pkg, name, want[name], got[name])
				}
			}
			for _, name := range slices.Sorted(maps.Keys(got)) {
				if _, ok := want[name]; !ok {
					t.Errorf("%s has %s and %s has not", pkg, name, packages[0])
				}
			}
		}
	}
}
