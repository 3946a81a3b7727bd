package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"text/template"
)

// A curve is the time for a unit at growing sizes, beside that at the smallest.
type curve struct {
	Name   string
	Points []point
	Peer   bool
}

type point struct {
	Growth float64 // times the smallest size
	Ratio  float64
	Label  string
}

func (r report) curves() []curve {
	var all []curve
	for _, m := range r.Results {
		if m.Growth == nil {
			continue
		}
		for i, series := range m.Growth.Series {
			c := curve{Name: m.Row[len("growth-"):] + ": " + series, Peer: i > 0}
			for _, size := range m.Growth.Sizes {
				f := m.figure(m.Growth.contestant(series, size), "ns")
				if f == nil {
					continue
				}
				p := point{float64(size) / float64(m.Growth.Sizes[0]), 1, sizeName(size, m.Growth.Unit)}
				if f.Ratio != nil {
					p.Ratio = f.Ratio.Median
				}
				c.Points = append(c.Points, p)
			}
			all = append(all, c)
		}
	}
	return all
}

//go:embed curves.svg.tmpl
var curvesTemplate string

const (
	plotLeft, plotTop, plotWidth, plotHeight = 60, 40, 460, 320
	legendLine                               = 20
)

// drawCurves draws sizes on a logarithmic axis.
func drawCurves(curves []curve) ([]byte, error) {
	widest, highest := 10.0, 1.25
	for _, c := range curves {
		for _, p := range c.Points {
			widest, highest = max(widest, p.Growth), max(highest, p.Ratio)
		}
	}
	decades := math.Ceil(math.Log10(widest))
	step := 0.25
	for highest/step > 8 {
		step *= 2
	}
	highest = step * math.Ceil(highest/step)
	colours := [...]string{"#0b6bcb", "#c2410c", "#15803d", "#7c3aed", "#be185d", "#4d7c0f", "#0e7490", "#a16207"}
	x := func(growth float64) float64 { return plotLeft + plotWidth*math.Log10(growth)/decades }
	y := func(ratio float64) float64 { return plotTop + plotHeight*(1-ratio/highest) }
	series := func(from, step, to float64) []float64 {
		var all []float64
		for v := from; v <= to+step/2; v += step {
			all = append(all, v)
		}
		return all
	}
	var out bytes.Buffer
	t, err := template.New("curves").Funcs(template.FuncMap{
		"x": x, "y": y,
		"colour":  func(i int) string { return colours[i%len(colours)] },
		"legendY": func(i int) int { return plotTop + 10 + i*legendLine },
		"decade":  func(d float64) float64 { return math.Pow(10, d) },
		"times":   func(v float64) string { return fmt.Sprintf("%g×", v) },
	}).Parse(curvesTemplate)
	if err != nil {
		return nil, err
	}
	err = t.Execute(&out, map[string]any{
		"Curves": curves, "Decades": series(0, 1, decades), "Ratios": series(0, step, highest),
		"Left": plotLeft, "Right": plotLeft + plotWidth, "Top": plotTop, "Bottom": plotTop + plotHeight,
		"Width": plotLeft + plotWidth + 320, "Height": max(plotTop+plotHeight+50, plotTop+len(curves)*legendLine+20),
	})
	return out.Bytes(), err
}
