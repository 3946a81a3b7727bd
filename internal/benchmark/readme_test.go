package main

import (
	"encoding/json"
	"os"
	"testing"
)

// TestCommitted holds README.md and growth.svg to results.json, so that no figure
// is written by hand.
func TestCommitted(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var r report
	if err := json.Unmarshal([]byte(read("results.json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Quick {
		t.Error("results.json is of a quick run")
	}
	if page, err := r.markdown(); err != nil || read("README.md") != page {
		t.Errorf("README.md is not of results.json: %v", err)
	}
	if len(r.curves()) == 0 {
		return
	}
	if drawn, err := drawCurves(r.curves()); err != nil || read("growth.svg") != string(drawn) {
		t.Errorf("growth.svg is not of results.json: %v", err)
	}
}
