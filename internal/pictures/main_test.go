package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestCommitted proves that the pictures are what this program draws, and that
// both color schemes have their colors.
func TestCommitted(t *testing.T) {
	for name, draw := range pictures {
		drawn, err := draw()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		committed, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(drawn, committed) {
			t.Errorf("%s is another picture: go -C internal/pictures run .", name)
		}
		if !bytes.Contains(drawn, []byte("prefers-color-scheme: dark")) {
			t.Errorf("%s has one color scheme", name)
		}
		elements := xml.NewDecoder(bytes.NewReader(drawn))
		for {
			if _, err := elements.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// TestSizes keeps a page with pictures quick to load.
func TestSizes(t *testing.T) {
	var total int64
	for _, pattern := range []string{"*.svg", "*.png", "../../examples/*/*.png", "../../examples/*/*/*.png", "../../examples/*/*.svg", "../benchmark/*.svg"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() > 150_000 {
				t.Errorf("%s has %d bytes", file, info.Size())
			}
			total += info.Size()
		}
	}
	if total == 0 || total > 600_000 {
		t.Errorf("all pictures have %d bytes", total)
	}
}
