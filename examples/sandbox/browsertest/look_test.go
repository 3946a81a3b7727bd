package browsertest

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("screenshots", "", "directory for screenshots; page.png is page-light.png with the colors that pngquant leaves")

// fill sends a bit of everything.
func fill(b *tab) {
	b.Helper()
	set := func(rule string) {
		b.Helper()
		evaluate[bool](b, `fetch("/sandbox/faults", {method: "POST", headers: {"Content-Type": "application/json"}, body: '`+rule+`'}).then(r => r.ok)`)
	}
	b.lookup("45717360", "411111")
	b.download()
	b.send("POST", "/bin/multiple", "{}")
	b.refund("rf_20417")
	set(`{"fault": "rate_limited", "area": "bins", "next": 1, "retry_after": 2}`)
	b.lookup("4111111111111111", "5555555555554444", "378282246310005", "tok_17", "999999")
	b.lookup("4111111111111111", "5555555555554444", "378282246310005", "tok_17", "999999")
	b.send("POST", "/bins/multiple", `{"cards": []}`)
	set(`{"fault": "truncated", "area": "updater", "next": 1}`)
	b.download()
	b.download()
	set(`{"fault": "server_error", "area": "refunds", "next": 1}`)
	b.refund("rf_20418")
	set(`{"fault": "drop_after_accept", "area": "refunds", "next": 1}`)
	b.refund("rf_20418")
	b.refund("rf_20418")
	b.refund("rf_20419")
	set(`{"fault": "slow", "area": "updater", "percent": 20}`)
	set(`{"fault": "drop_after_accept", "area": "refunds", "next": 3}`)
	b.wait(row(13) + `?.innerText.includes("200") && $("rules").textContent.includes("20 %")`)
}

//go:embed contrast.js
var contrast string

// TestContrast holds all text to the 4.5 to 1 of WCAG 2.2, 1.4.3, and looks at
// the page in both color schemes.
func TestContrast(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		for name, size := range map[string][2]int64{"page": {wide, high}, "phone": {phoneWide, phoneHigh}} {
			t.Run(scheme+" "+name, func(t *testing.T) {
				b := openTab(t, size[0], size[1],
					&emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme},
					&emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
				b.look(name+"-empty-"+scheme, 3)
				fill(b)
				b.look(name+"-"+scheme, 40)
				b.do(chromedp.Click(chromedp.CSS(`.row.duplicate`)))
				b.wait(`$("detail").open && $("content").innerText.includes("Response")`)
				b.look(name+"-detail-"+scheme, 60)
			})
		}
	}
}

func (b *tab) look(name string, atLeast int) {
	b.Helper()
	found := evaluate[struct {
		Texts int
		Weak  []string
	}](b, contrast)
	if len(found.Weak) > 0 || found.Texts < atLeast {
		b.Errorf("%s: %d texts, of which too weak: %q", name, found.Texts, found.Weak)
	}
	b.axe(name)
	if *shots == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(*shots, name+".png")
	if err := os.WriteFile(path, png, 0o644); err != nil {
		b.Fatal(err)
	}
	fmt.Println(path, len(png))
}

// axe holds the page to the rules of axe-core, whose script AXE_CORE names.
func (b *tab) axe(name string) {
	b.Helper()
	path := os.Getenv("AXE_CORE")
	if path == "" {
		if os.Getenv("CI_REQUIRE_SERVERS") != "" {
			b.Fatal("AXE_CORE is not set (npm install axe-core; AXE_CORE=node_modules/axe-core/axe.min.js)")
		}
		return
	}
	script, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	evaluate[bool](b, string(script)+"\n;true")
	found := evaluate[struct {
		Passes     int
		Violations []string
	}](b, `axe.run().then(r => ({passes: r.passes.length, violations: r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).join(" "))}))`)
	if len(found.Violations) > 0 || found.Passes < 15 {
		b.Errorf("%s: %d rules of axe-core kept; not kept: %q", name, found.Passes, found.Violations)
	}
}
