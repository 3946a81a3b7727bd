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
	tests := suite{"p", nil}
	ends, err := target{"p", nil, []suite{tests}}.try(t.Context(), root, "", time.Now().Add(time.Hour), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]end{
		"p/p.go Larger boundary 1": survived,
		"p/p.go Larger negation 1": killed,
		"p/p.go Sum boundary 1":    killed,
		"p/p.go Sum negation 1":    killed,
		"p/p.go Sum step 1":        hung, // sums up for ever
		"p/p.go Unused negation 1": unseen,
	}
	for m, e := range ends {
		if want[m.name] != e {
			t.Errorf("%s: %s", m.name, e)
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
