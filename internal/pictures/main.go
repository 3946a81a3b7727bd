// Command pictures draws the pictures of the documentation. It is a module of its
// own, so that they do not travel with the library.
//
//	go -C internal/pictures run .
//
// bulk.txt is what examples/bulk showed on a terminal of 100 columns halfway through
// the rows of its demo. trace.json has the spans of a refund that examples/telemetry -json
// printed. probe.png shows the page that examples/probe -html wrote about
// examples/sandbox, as Chromium draws it, and pngquant made it small:
//
//	chromium --headless --hide-scrollbars --window-size=1200,850 --screenshot=probe.png probe.html
//
// The page of the sandbox is in examples/sandbox/browsertest.
package main

import (
	"fmt"
	"os"
)

func main() {
	for name, draw := range pictures {
		picture, err := draw()
		if err == nil {
			err = os.WriteFile(name, picture, 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "pictures: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

var pictures = map[string]func() ([]byte, error){
	"call.svg":   func() ([]byte, error) { return drawCall(), nil },
	"refund.svg": func() ([]byte, error) { return drawOutcomes(), nil },
	"bulk.svg":   drawTerminal,
	"trace.svg":  drawTrace,
}
