package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Each way to end is told apart, in code that has one of each.
func TestEnds(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/sample\n\ngo 1.26\n",
		"p/p.go": `package p

func Larger(a, b int) bool { return a > b }

func Sum(n int) (sum int) {
	for i := 0; i < n; i++ {
		sum += i
	}
	return sum
}

func Unused(a string) bool { return a == "" }
`,
		"p/p_test.go": `package p

import "testing"

func Test(t *testing.T) {
	if !Larger(2, 1) || Sum(3) != 3 {
		t.Fail()
	}
}
`,
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	defer func(before time.Duration) { patience = before }(patience)
	patience = time.Second
	tester := &tester{root: root, workers: 2}
	source, err := tester.mutants(t.Context(), target{"p", nil, []suite{{"p", nil}}})
	if err != nil {
		t.Fatal(err)
	}
	ends, err := tester.try(t.Context(), source, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]end{
		"p Larger boundary: a > b":     survived,
		"p Larger negation: a > b":     killed,
		"p Sum boundary: i < n":        killed,
		"p Sum negation: i < n":        killed,
		"p Sum step: i++":              hung, // sums up for ever
		"p Sum removal: sum += i":      killed,
		"p Sum zero: sum":              killed,
		"p Unused negation: a == \"\"": unseen,
	}
	for _, m := range source.mutants {
		if want[m.name] != ends[m.id] {
			t.Errorf("%s: %q", m.name, ends[m.id])
		}
	}
	if len(ends) != len(want) {
		t.Errorf("%d mutants", len(ends))
	}
}

func TestSurvivorsHaveReasons(t *testing.T) {
	for name, reason := range survivors() {
		if len(reason) < 10 {
			t.Errorf("%s: %q", name, reason)
		}
	}
}
