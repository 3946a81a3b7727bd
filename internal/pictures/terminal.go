package main

import _ "embed"

//go:embed bulk.txt
var terminalText []byte

// drawTerminal draws what a bulk run shows in a terminal.
func drawTerminal() ([]byte, error) {
	shown := lines(terminalText)
	c := canvas{width: 860, height: 64 + lineHeight*len(shown),
		title: "A bulk run in a terminal", about: "The last line is the bar of the progress: " + shown[len(shown)-1]}
	c.rect("box", 10, 10, c.width-20, c.height-20)
	for i, line := range shown {
		c.text("code", 26, 44+lineHeight*i, line)
	}
	return c.picture(), nil
}
