package surface_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("`(Test[A-Z]\\w*)`")
	dirName  = regexp.MustCompile(`(?:\./|go -C )((?:internal|examples|refunds)/[a-z/]+)`)
	linkName = regexp.MustCompile(`\]\(([a-z./]+)\)`)
)

// TestMaps checks that the tests and packages which the maps of the repository name are
// there.
func TestMaps(t *testing.T) {
	var tests strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		tests.Write(code)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"internal/README.md", "examples/README.md", ".github/SECURITY.md"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range testName.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(tests.String(), "\nfunc "+name[1]+"(t *testing.T)") {
				t.Errorf("%s: there is no test %s", path, name[1])
			}
		}
		for _, dir := range dirName.FindAllStringSubmatch(string(text), -1) {
			if info, err := os.Stat(filepath.Join(root, dir[1])); err != nil || !info.IsDir() {
				t.Errorf("%s: there is no directory %s", path, dir[1])
			}
		}
		for _, link := range linkName.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(path), link[1])); err != nil {
				t.Errorf("%s: there is no %s", path, link[1])
			}
		}
	}
}
