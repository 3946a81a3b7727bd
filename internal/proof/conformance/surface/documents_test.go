package surface_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var root = filepath.Join("..", "..", "..", "..")

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocuments: the tests, folders, files and exported names that the documents mention are
// there.
func TestDocuments(t *testing.T) {
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	}
	names := declaredNames(t)
	for _, document := range []string{"README.md", "internal/README.md", "examples/README.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md", ".github/UNDOCUMENTED.md", "internal/flow/README.md", "refunds/outbox/README.md"} {
		mentions := func(pattern string, isThere func(name string) bool) {
			t.Helper()
			for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, document), -1) {
				if !isThere(found[1]) {
					t.Errorf("%s mentions %s, which there is not", document, found[1])
				}
			}
		}
		mentions("`(Test[A-Z]\\w*)`", func(name string) bool { return names[name] })
		mentions(`(?:^|[^.\w])((?:With|Err)[A-Z]\w*)`, func(name string) bool { return names[name] })
		mentions(`(?:^|[^.\w])((?:bins|refunds|updater)\.[A-Z]\w*)`, func(name string) bool { return names[name] })
		mentions(`(?:[^.]\./|go -C )((?:internal|examples|refunds)/[a-z/]+)`, exists)
		mentions("`([a-z]+/[a-z_/]+\\.go)`", func(file string) bool { return exists(file) || exists(filepath.Join(filepath.Dir(document), file)) })
		mentions(`\]\(([\w./-]+)(?:#[\w-]+)?\)`, func(link string) bool { return exists(filepath.Join(filepath.Dir(document), link)) })
	}
}

var declaredName = regexp.MustCompile(`(?m)^(?:func|var|type|const|\t) ?([A-Z]\w*)`)

// declaredNames are those of the repository, alone and after their package.
func declaredNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		code, err := os.ReadFile(path)
		for _, found := range declaredName.FindAllStringSubmatch(string(code), -1) {
			names[found[1]], names[filepath.Base(filepath.Dir(path))+"."+found[1]] = true, true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
