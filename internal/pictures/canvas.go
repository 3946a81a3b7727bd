package main

import (
	"bytes"
	"fmt"
	"html"
	"strings"
)

// A canvas collects the elements of an SVG picture. Colors are classes, because the
// reader's color scheme decides them.
type canvas struct {
	body          bytes.Buffer
	width, height int
	title, about  string
}

const style = `
text { fill: #1f2328; font: 14px system-ui, sans-serif }
.strong { font-weight: 600 } .code { font: 13px ui-monospace, Menlo, Consolas, monospace; white-space: pre }
.quiet { fill: #59636e } .small { font-size: 13px }
.paper { fill: #ffffff } .box { fill: #f6f8fa; stroke: #59636e } .frame { fill: none; stroke: #59636e; stroke-dasharray: 5 4 }
.line { fill: none; stroke: #59636e; stroke-width: 1.5 } .tip { fill: #59636e }
.good { fill: #1a7f37 } .calm { fill: #0969da } .warn { fill: #9a6700 } .bad { fill: #cf222e }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .quiet { fill: #9198a1 }
.paper { fill: #0d1117 } .box { fill: #151b23; stroke: #9198a1 } .frame { stroke: #9198a1 }
.line { stroke: #9198a1 } .tip { fill: #9198a1 }
.good { fill: #3fb950 } .calm { fill: #58a6ff } .warn { fill: #d29922 } .bad { fill: #f85149 }
}
`

func (c *canvas) picture() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title about">`+"\n", c.width, c.height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"about\">%s</desc>\n<style>%s</style>\n", html.EscapeString(c.title), html.EscapeString(c.about), style)
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect class="paper" width="%d" height="%d" rx="6"/>`+"\n", c.width, c.height)
	b.Write(c.body.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (c *canvas) rect(class string, x, y, width, height int) {
	fmt.Fprintf(&c.body, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n", class, x, y, width, height)
}

func (c *canvas) bar(class string, x, y, width, height float64) {
	fmt.Fprintf(&c.body, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", class, x, y, width, height)
}

func (c *canvas) text(class string, x, y int, line string) {
	fmt.Fprintf(&c.body, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(line))
}

const lineHeight = 20

// box is a heading over lines of text.
func (c *canvas) box(x, y, width, height int, heading string, lines ...string) {
	c.rect("box", x, y, width, height)
	c.text("strong", x+14, y+25, heading)
	for i, line := range lines {
		c.text("small", x+14, y+27+lineHeight*(i+1), line)
	}
}

// paragraph is lines whose middle is at y.
func (c *canvas) paragraph(x, y int, lines []string) {
	for i, line := range lines {
		c.text("small", x, y+(2*i-len(lines)+1)*lineHeight/2, line)
	}
}

// arrow goes through points, as "x,y x,y".
func (c *canvas) arrow(points string) { c.path(points, ` marker-end="url(#tip)"`) }

func (c *canvas) bothWays(points string) {
	c.path(points, ` marker-start="url(#tip)" marker-end="url(#tip)"`)
}

func (c *canvas) path(points, markers string) {
	fmt.Fprintf(&c.body, `<polyline class="line" points="%s"%s/>`+"\n", points, markers)
}

// lines splits a text at its newlines, without the last.
func lines(text []byte) []string { return strings.Split(strings.TrimRight(string(text), "\n"), "\n") }
