package conformance_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	declaredName  = regexp.MustCompile(`(?m)^(?:func|var|type|const) (\w+)|^func \([^)]*\) (\w+)`)
	mentionedName = regexp.MustCompile(`(?:^|[^.\w])(?:(bins|refunds|updater)\.([A-Z]\w*)|((?:With|Err)[A-Z]\w*))`)
)

// TestReadmeNames compares the names in the README with what the packages
// export: every option and condition is there, and nothing else is.
func TestReadmeNames(t *testing.T) {
	text := readme(t)
	exports := map[string][]string{}
	var anywhere []string
	for _, pkg := range packages {
		for _, found := range declaredName.FindAllStringSubmatch(listing(t, filepath.Join("..", "..", pkg)), -1) {
			exports[pkg] = append(exports[pkg], found[1]+found[2])
		}
		anywhere = append(anywhere, exports[pkg]...)
		for _, name := range exports[pkg] {
			if (strings.HasPrefix(name, "With") || strings.HasPrefix(name, "Err") && name != "Error") && !strings.Contains(text, name) {
				t.Errorf("the README does not mention %s.%s", pkg, name)
			}
		}
	}
	for _, found := range mentionedName.FindAllStringSubmatch(text, -1) {
		if found[1] != "" && !slices.Contains(exports[found[1]], found[2]) || found[3] != "" && !slices.Contains(anywhere, found[3]) {
			t.Errorf("the README mentions %s, which there is not", found[0])
		}
	}
}

// TestReadmeDefaults compares the README's table of defaults with the clients'.
func TestReadmeDefaults(t *testing.T) {
	rows := map[string][]string{}
	for line := range strings.Lines(readme(t)) {
		if cells := strings.Split(line, " | "); len(cells) > 3 {
			rows[strings.TrimPrefix(cells[0], "| ")] = cells[1:4]
		}
	}
	for _, test := range []struct {
		row, setting string
		unit         []string // of the code and of the README
		around       [2]string
	}{
		{"repetitions", "MaxRetries", nil, [2]string{}},
		{"wait before one", "WaitBase", []string{" * time.Millisecond", " ms"}, [2]string{"random, up to ", "·2ⁿ and 5 s"}},
		{"wait before one", "WaitMax", []string{" * time.Second", " s"}, [2]string{"random, up to 200 ms·2ⁿ and ", ""}},
		{"attempt timeout", "AttemptTimeout", []string{" * time.Second", " s"}, [2]string{}},
		{"whole call, if the context has no deadline", "CallTimeout", []string{" * time.Second", " s"}, [2]string{}},
		{"answer at most", "MaxResponseBytes", []string{" << 20", " MiB", " << 10", " KiB"}, [2]string{}},
		{"idle connections kept", "IdleConnTimeout", []string{" * time.Second", " s"}, [2]string{}},
	} {
		cells := rows[test.row]
		if len(cells) != len(packages) {
			t.Fatalf("no row %q", test.row)
		}
		for i, pkg := range packages {
			code, err := os.ReadFile(filepath.Join("..", "..", pkg, "client.go"))
			if err != nil {
				t.Fatal(err)
			}
			found := regexp.MustCompile(`\b` + test.setting + `: +([^,}\n]+)`).FindStringSubmatch(string(code))
			cell := cells[i]
			if cell == "same" {
				cell = cells[0]
			}
			if found == nil {
				if strings.ContainsAny(cell[:1], "0123456789") {
					t.Errorf("%s, %s: the README says %q and the code nothing", pkg, test.row, cell)
				}
				continue
			}
			want := test.around[0] + strings.NewReplacer(test.unit...).Replace(found[1]) + test.around[1]
			if !strings.HasPrefix(cell, want) {
				t.Errorf("%s, %s: the README says %q and the code %q", pkg, test.row, cell, want)
			}
		}
	}
}
