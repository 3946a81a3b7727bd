package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuickRun measures a few rows, of each kind one, and reads what is written.
func TestQuickRun(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run([]string{"-quick", "-only", "lookup,bulk-32,growth-items", "-o", dir}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var r report
	if err := json.Unmarshal(read("results.json"), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Results) != 3 || !r.Quick || r.Machine == "" {
		t.Fatalf("%d results: %+v", len(r.Results), r)
	}
	for _, m := range r.Results {
		if len(m.Figures) == 0 || len(m.Verdicts) == 0 {
			t.Errorf("%s has %d figures and %d verdicts", m.Row, len(m.Figures), len(m.Verdicts))
		}
		for _, f := range m.Figures {
			if len(f.Rounds) != 2 || f.Spread.Low > f.Spread.Median || f.Spread.Median > f.Spread.High {
				t.Errorf("%s, %s: %+v", m.Row, f.Contestant, f)
			}
		}
		for _, v := range m.Verdicts {
			if strings.HasSuffix(v.Target, "not measured") {
				t.Errorf("%s: %s", m.Row, v.Target)
			}
		}
	}
	for _, s := range stacks {
		if f := r.Results[0].figure(s.name, "ns"); f == nil || s.name != library && f.Ratio == nil {
			t.Errorf("lookups of %s are not compared: %+v", s.name, f)
		}
	}
	if !bytes.Equal(read("README.md"), out.Bytes()) {
		t.Error("what is printed is not what is written")
	}
	elements := xml.NewDecoder(bytes.NewReader(read("growth.svg")))
	lines := 0
	for {
		token, err := elements.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			lines++
		}
	}
	if lines != 2 {
		t.Errorf("%d curves are drawn", lines)
	}
}

func TestUnusableFlags(t *testing.T) {
	for _, args := range [][]string{{"-only", "lookup,nothing"}, {"-rounds", "0"}, {"-unknown"}} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
